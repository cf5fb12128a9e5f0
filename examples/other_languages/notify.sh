#!/bin/sh
# Queues a message from a shell: notify.sh CHAT_ID TEXT [FILE]. Needs redis-cli or valkey-cli, and REDIS_URL.
# With a third argument the text is the caption of that document. BOT: the bot's id, where there are several.
set -eu
door=${REDIS_MESSAGES_KEY:-pillarbox:outbound}
cli=$(command -v redis-cli || command -v valkey-cli)

redis() { "$cli" -u "$REDIS_URL" -e "$@"; }

json() { # a text as a JSON string
  printf '%s' "$1" | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/	/\\t/g' | tr -d '\000-\010\013-\037' |
    awk 'BEGIN { printf "\"" } NR > 1 { printf "\\n" } { printf "%s", $0 } END { printf "\"" }'
}

bot=${BOT:+\"bot\": $BOT, }
if [ $# -lt 3 ]; then
  message="{$bot\"method\": \"sendMessage\", \"params\": {\"chat_id\": $(json "$1"), \"text\": $(json "$2")}}"
else
  id=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  redis -x SETEX "$door:file:$id" 86400 < "$3" > /dev/null # before the message: it must be there when it is sent
  message="{$bot\"method\": \"sendDocument\",
    \"params\": {\"chat_id\": $(json "$1"), \"document\": \"attach://file\", \"caption\": $(json "$2")},
    \"files\": {\"file\": {\"id\": \"$id\", \"filename\": $(json "$(basename "$3")"), \"once\": true}}}"
fi
printf '%s' "$message" | redis -x RPUSH "$door" > /dev/null
