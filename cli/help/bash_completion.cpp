#include "cli/help/described.h"

namespace tutti {
namespace {

using Kind = Offer::Kind;

constexpr const char* kBashHead = R"bash(# bash completion of tutti; `tutti completion bash` writes it.
_tutti_words() {
  local command=${COMP_WORDS[0]/#\~/$HOME}
  "$command" completion --words "$1" 2>/dev/null
}

_tutti_add() { mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen "$@" -- "$cur"); }

# Offers what an argument may be: words, and kinds of files and names after an @.
_tutti_offer() {
  local one
  for one in ${1//,/ }; do
    case $one in
      @files | @paths) compopt -o filenames 2>/dev/null; _tutti_add -f ;;
      @folders) compopt -o filenames 2>/dev/null; _tutti_add -d ;;
      @recipes)
        compopt -o filenames 2>/dev/null
        _tutti_add -d
        _tutti_add -f -X '!*.toml' ;;
      @commands) _tutti_add -W "$commands" ;;
      @keys)
        compopt -o nospace 2>/dev/null
        _tutti_add -W "$(_tutti_words keys)" ;;
      @names) _tutti_add -W "$(_tutti_words names)" ;;
      @nouns) _tutti_add -W "$(_tutti_words nouns)" ;;
      *) _tutti_add -W "$one" ;;
    esac
  done
}

# Sets `value` to what the value of an option may be; fails for a flag.
_tutti_value_of() {
  local one
  for one in $valued; do
    [[ $one == "$1"=* ]] && value=${one#*=} && return 0
  done
  return 1
}

_tutti() {
  local cur=${COMP_WORDS[COMP_CWORD]} commands command= flags= valued= positionals= rest= value= place=0 i
  COMPREPLY=()
)bash";

constexpr const char* kBashTail = R"bash(
  # Bash cuts --option=value into three words.
  local prev=${COMP_WORDS[COMP_CWORD - 1]}
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if [[ $prev == -* ]] && _tutti_value_of "$prev"; then
    _tutti_offer "$value"
    return
  fi
  [[ ${COMP_WORDS[COMP_CWORD]} == = || ${COMP_WORDS[COMP_CWORD - 1]} == = ]] && return
  if [[ $cur == -* ]]; then
    local options="$flags" one
    for one in $valued; do options+=" ${one%%=*}"; done
    _tutti_add -W "$options"
    return
  fi
  for ((i = begin; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      =) ((i++)) ;;
      -*) [[ ${COMP_WORDS[i + 1]} != = ]] && _tutti_value_of "${COMP_WORDS[i]}" && ((i++)) ;;
      *) ((place++)) ;;
    esac
  done
  local -a offers=($positionals)
  _tutti_offer "${offers[place]:-$rest}"
}
complete -F _tutti tutti
)bash";

const char* word_of(Kind kind) {
  switch (kind) {
    case Kind::kNothing:
      return "";
    case Kind::kFiles:
      return "@files";
    case Kind::kFolders:
      return "@folders";
    case Kind::kPaths:
      return "@paths";
    case Kind::kRecipes:
      return "@recipes";
    case Kind::kCommands:
      return "@commands";
    case Kind::kKeys:
      return "@keys";
    case Kind::kNames:
      return "@names";
    case Kind::kNouns:
      return "@nouns";
  }
  return "";
}

// "auto,@paths"; "," if there is nothing to offer, so that later places keep their numbers.
std::string bash_offer(const std::string& placeholder) {
  const Offer offer = offer_of(placeholder);
  std::string text;
  for (const auto& word : offer.words) text += word + ',';
  text += word_of(offer.kind);
  return text.empty() ? "," : text;
}

void append_word(std::string& list, const std::string& word) { list += (list.empty() ? "" : " ") + word; }

std::string bash_case(const DescribedCommand& command) {
  std::string flags, valued, positionals, rest;
  for (const auto& option : command.named())
    for (const auto& name : option.names)
      append_word(option.is_flag() ? flags : valued,
                  option.is_flag() ? name : name + '=' + bash_offer(option.placeholder));
  for (const auto& option : command.positionals()) {
    append_word(positionals, bash_offer(option.placeholder));
    if (option.repeated) rest = bash_offer(option.placeholder);
  }
  if (command.name.empty()) positionals = "@commands";
  return "    " + (command.name.empty() ? "''" : command.name) + ")\n      flags='" + flags +
         "'\n      valued='" + valued + "'\n      positionals='" + positionals + "'\n      rest='" + rest +
         "' ;;\n";
}

}  // namespace

std::string bash_completion(const std::vector<DescribedCommand>& commands) {
  std::string names, cases;
  for (const auto& command : commands) {
    if (!command.name.empty()) append_word(names, command.name);
    cases += bash_case(command);
  }
  return std::string(kBashHead) + "  commands='" + names +
         "'\n  local begin=1\n"
         "  if ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} != -* ]]; then\n"
         "    command=${COMP_WORDS[1]}\n    begin=2\n  fi\n"
         "  case $command in\n" +
         cases + "    *) return ;;\n  esac\n" + kBashTail;
}

}  // namespace tutti
