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
    summary) COMPREPLY=($(compgen -W '--json --help' -- "$word") $(compgen -f -- "$word")); return ;;
    table)
        case $before in
        --sort-by) COMPREPLY=($(compgen -W 'self_cpu_time_total cpu_time_total cpu_time self_cuda_time_total cuda_time_total
            cuda_time cpu_memory_usage self_cpu_memory_usage cuda_memory_usage self_cuda_memory_usage count flops key
            none' -- "$word")) ;;
        --flops) COMPREPLY=($(compgen -W 'torch extended none' -- "$word")) ;;
        --time-unit) COMPREPLY=($(compgen -W 's ms us' -- "$word")) ;;
        --group-by) COMPREPLY=($(compgen -W 'input_shape stack: overload_name' -- "$word")) ;;
        --row-limit | --header | --max-*-column-width) ;;
        *) COMPREPLY=($(compgen -W '--sort-by --row-limit --group-by --top-level-events-only
            --include-python-functions --flops --time-unit --header --max-name-column-width --max-shapes-column-width
            --max-src-column-width --json --help' -- "$word") $(compgen -f -- "$word")) ;;
        esac
        return ;;
    events)
        case $before in
        --flops) COMPREPLY=($(compgen -W 'torch extended none' -- "$word")) ;;
        *) COMPREPLY=($(compgen -W '--json --flops --help' -- "$word") $(compgen -f -- "$word")) ;;
        esac
        return ;;
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
