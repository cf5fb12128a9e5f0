"""Alembic's entry; the connection comes from `pillarbox.db.upgrade`."""

from alembic import context

from pillarbox.db.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
