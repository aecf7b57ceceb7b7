# bash completion for tprof. Made by `make docs` from docs/templates/tprof.bash.

_tprof() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i
@commands.bash@
@options.bash@
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "$commands --help --version" -- "$word"))
        return
    fi
    case ${COMP_WORDS[1]} in
    check) COMPREPLY=($(compgen -W '--json --help' -- "$word") $(compgen -f -- "$word")); return ;;
    recover) COMPREPLY=($(compgen -W '--help' -- "$word") $(compgen -f -- "$word")); return ;;
    doctor) COMPREPLY=($(compgen -W '--json --help' -- "$word") $(compgen -c -- "$word")); return ;;
    run) ;;
    *) return ;;
    esac
    # Behind the program stand its own arguments.
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --) ((i++)); break ;;
        --*) [[ ${COMP_WORDS[i + 1]} == '=' ]] && ((i++)); ((i++)) ;;
        *) break ;;
        esac
    done
    if ((i < COMP_CWORD)); then
        COMPREPLY=($(compgen -f -- "$word"))
        return
    fi
    [[ $word == '=' ]] && word=
    [[ $before == '=' ]] && before=${COMP_WORDS[COMP_CWORD - 2]}
    case $before in
@values.bash@
    --config | --cuda-graph-annotations | --plugins) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --dir | --spool-dir) COMPREPLY=($(compgen -d -- "$word")); return ;;
    --help | --) ;;
    --*) return ;;
    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    else
        COMPREPLY=($(compgen -c -- "$word"))
    fi
}
complete -F _tprof tprof
