# bash completion for tprof. Made by `make docs` from docs/templates/tprof.bash.

_tprof() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i
    local commands='run check recover doctor'
    local options='--help
        --enabled --config --strict --activities --schedule --step
        --on-trace-ready --dir --spool-dir --children --worker-name --use-gzip
        --gzip-level --use-python-export --record-shapes --profile-memory --with-stack --with-flops
        --with-modules --acc-events --experimental-config --sort-by --row-limit --group-by
        --stacks-metric --memory-device --metadata --metadata-json --trace-id --post-processing-timeout-s
        --heap --graph-lanes --cuda-graph-annotations --buffer-mb --hook --control
        --plugins --log --enable-pytorch-execution-trace --enable-pytorch-execution-trace-extras'
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
    --enabled) COMPREPLY=($(compgen -W '0 1' -- "$word")); return ;;
    --strict) COMPREPLY=($(compgen -W '0 1' -- "$word")); return ;;
    --children) COMPREPLY=($(compgen -W 'auto all none' -- "$word")); return ;;
    --use-gzip) COMPREPLY=($(compgen -W '0 1' -- "$word")); return ;;
    --use-python-export) COMPREPLY=($(compgen -W '0 1' -- "$word")); return ;;
    --record-shapes) COMPREPLY=($(compgen -W '0 1' -- "$word")); return ;;
    --profile-memory) COMPREPLY=($(compgen -W '0 1' -- "$word")); return ;;
    --with-stack) COMPREPLY=($(compgen -W '0 1' -- "$word")); return ;;
    --with-flops) COMPREPLY=($(compgen -W '0 1' -- "$word")); return ;;
    --with-modules) COMPREPLY=($(compgen -W '0 1' -- "$word")); return ;;
    --acc-events) COMPREPLY=($(compgen -W '0 1' -- "$word")); return ;;
    --stacks-metric) COMPREPLY=($(compgen -W 'self_cpu_time_total self_cuda_time_total self_xpu_time_total self_privateuse1_time_total' -- "$word")); return ;;
    --heap) COMPREPLY=($(compgen -W 'off count stacks' -- "$word")); return ;;
    --graph-lanes) COMPREPLY=($(compgen -W 'none all' -- "$word")); return ;;
    --hook) COMPREPLY=($(compgen -W 'auto interpose callback' -- "$word")); return ;;
    --control) COMPREPLY=($(compgen -W '0 1' -- "$word")); return ;;
    --log) COMPREPLY=($(compgen -W 'quiet warn info debug' -- "$word")); return ;;
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
