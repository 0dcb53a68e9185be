/** The hidden verb that shells ask. It answers one word a line; `:files` means names of files here. */
export const completeVerb = "_complete"

const bash = `# warren completion bash > /etc/bash_completion.d/warren
_warren() {
  local word="\${COMP_WORDS[COMP_CWORD]}" answer
  answer=$(warren ${completeVerb} -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" "$word" 2>/dev/null) || return
  if [ "$answer" = ":files" ]; then
    compopt -o default
    COMPREPLY=()
  else
    mapfile -t COMPREPLY <<<"$answer"
    [ -n "$answer" ] || COMPREPLY=()
  fi
}
complete -F _warren warren
`

const zsh = `#compdef warren
# warren completion zsh > "\${fpath[1]}/_warren"
_warren() {
  local answer
  answer=$(warren ${completeVerb} -- "\${(@)words[2,CURRENT-1]}" "\${words[CURRENT]}" 2>/dev/null) || return
  if [ "$answer" = ":files" ]; then
    _files
  elif [ -n "$answer" ]; then
    compadd -- "\${(@f)answer}"
  fi
}
if [ "$funcstack[1]" = "_warren" ]; then _warren "$@"; else compdef _warren warren; fi
`

const fish = `# warren completion fish > ~/.config/fish/completions/warren.fish
function __warren_complete
  set -l before (commandline -opc)
  set -l answer (warren ${completeVerb} -- $before[2..-1] (commandline -ct) 2>/dev/null)
  if test "$answer" = ":files"
    __fish_complete_path (commandline -ct)
  else
    printf '%s\\n' $answer
  end
end
complete -c warren -f -a '(__warren_complete)'
`

export const completionScripts = { bash, zsh, fish }
