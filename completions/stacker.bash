# bash completion for stacker(1). The options are read from `stacker COMMAND --help`, so that they
# are always those of the program that is installed.

_stacker_options() {
	"$1" ${2:+"$2"} --help 2>/dev/null |
		sed -nE 's/^ +(-[A-Za-z]), +(--[a-z-]+).*/\1 \2/p; s/^ +(--[a-z-]+).*/\1/p'
}

_stacker_processes() {
	local dir
	for dir in /proc/[0-9]*; do
		[ -e "$dir/exe" ] && echo "${dir#/proc/}" # kernel threads have none
	done
}

_stacker() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local program=${COMP_WORDS[0]} command='' i
	COMPREPLY=()

	# --pid=1 is three words here.
	[ "$word" != = ] || word=''
	[ "$before" != = ] || before=${COMP_WORDS[COMP_CWORD - 2]}
	# Options or a pid without a command mean onephase.
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		capture | symbolize | onephase | addr2line | cache)
			command=${COMP_WORDS[i]}
			break
			;;
		-h | --help | -V | --version | -v | --verbose) ;;
		-* | [0-9]*)
			command=onephase
			break
			;;
		esac
	done

	case $command:$before in
	addr2line:-p) ;; # --pretty-print there
	*:--pid | *:-p)
		mapfile -t COMPREPLY < <(compgen -W "$(_stacker_processes)" -- "$word")
		return
		;;
	esac
	case $before in
	--format)
		mapfile -t COMPREPLY < <(compgen -W 'text json' -- "$word")
		return
		;;
	--method)
		mapfile -t COMPREPLY < <(compgen -W 'auto bpf ptrace' -- "$word")
		return
		;;
	--debug-dir | --sysroot)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -d -- "$word")
		return
		;;
	--output | -o | --input | -i | --executable | --exe | -e)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
		;;
	--timeout | --tid | -t | --stack-limit | --stack-total | --max-frames | --max-memory | --debuginfod-timeout | \
		--section | -j | --target | -b)
		return
		;;
	esac

	if [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_stacker_options "$program" "${command:-onephase}")" -- "$word")
	elif [ -z "$command" ]; then
		mapfile -t COMPREPLY < <(compgen -W \
			"capture symbolize onephase addr2line cache $(_stacker_processes)" -- "$word")
	fi
}

complete -F _stacker stacker
