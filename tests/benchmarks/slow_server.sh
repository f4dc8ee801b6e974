#!/bin/sh
# An MCP server that takes a second until it answers at all; it has one tool.
#
# It is a shell script because starting it costs next to nothing: twenty interpreters that start
# at once would take longer than all that is to be measured.

sleep 1
while read -r line; do
    id=${line##*\"id\":}
    id=${id%%[,\}]*}
    case $line in
    *'"initialize"'*)
        result='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"0"}}'
        ;;
    *'"tools/list"'*)
        result='"result":{"tools":[{"name":"nothing","inputSchema":{"type":"object"}}]}'
        ;;
    *'"id":'*)
        result='"error":{"code":-32601,"message":"method not found"}'
        ;;
    *)
        continue
        ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$result"
done
