tries=$1
key=$(printf %s "$COHABIT_PROGRESS" | cksum | tr -c 0-9 -)
while :; do
    for directory in "${TMPDIR:-/tmp}/cohabit-notebook-$key"*; do
        # Others may create such a directory, but not one that is ours.
        [ -O "$directory" ] || continue
        for file in "$directory"/jpserver-*.json "$directory"/nbserver-*.json; do
            [ -f "$file" ] && text=$(cat "$file") || continue
            case $text in *'}') printf '%s\n' "$text" && exit 0 ;; esac
        done
    done
    tries=$((tries - 1))
    [ "$tries" != 0 ] || exit 1
    sleep 0.3
done
