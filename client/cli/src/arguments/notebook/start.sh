fail() {
    echo "cohabit notebook: $1" >&2
    exit 127
}
python=$1
shift
if [ -n "$python" ]; then
    command -v -- "$python" > /dev/null || fail "there is no program $python on this node: name another --python"
    "$python" -c 'import jupyterlab' || fail "$python has no JupyterLab: run $python -m pip install jupyterlab"
    set -- "$python" -m jupyterlab "$@"
else
    for program in jupyter-lab jupyter-notebook jupyter-server ''; do
        command -v "$program" > /dev/null && break
    done
    [ -n "$program" ] || fail "there is no Jupyter in the PATH of this job: run pip install jupyterlab, \
or name a Python that has it with --python"
    set -- "$program" "$@"
fi
# The path of its progress is that of no other rank on this node, whatever the cluster.
key=$(printf %s "$COHABIT_PROGRESS" | cksum | tr -c 0-9 -)
JUPYTER_RUNTIME_DIR=$(mktemp -d "${TMPDIR:-/tmp}/cohabit-notebook-${key}XXXXXXXX") ||
    fail "a directory for the files of Jupyter cannot be created"
JUPYTER_TOKEN=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
export JUPYTER_RUNTIME_DIR JUPYTER_TOKEN
[ "$(id -u)" = 0 ] && set -- "$@" --allow-root
# Jupyter gets the signals of a stop, too. The directory is removed when it has ended.
trap : TERM INT HUP
"$@" --no-browser --ip=127.0.0.1 --port=0 < /dev/null &
wait "$!"
code=$?
while kill -0 "$!" 2> /dev/null; do
    wait "$!"
    code=$?
done
rm -rf "$JUPYTER_RUNTIME_DIR"
exit "$code"
