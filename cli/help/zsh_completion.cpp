#include "cli/help/described.h"
#include "cli/help/shell_text.h"

namespace tutti {
namespace {

using Kind = Offer::Kind;

constexpr const char* kZshHead = R"zsh(#compdef tutti
# zsh completion of tutti; `tutti completion zsh` writes it.
_tutti_words() {
  local -a found
  found=(${(f)"$(_call_program words $tutti completion --words $1)"})
  if [[ $1 == keys ]]; then compadd -S '' -a found; else compadd -a found; fi
}
_tutti_recipes() { _files -g '*.toml' }

_tutti() {
  local tutti=${(q)words[1]} curcontext=$curcontext state line
)zsh";

constexpr const char* kZshTail = R"zsh(
if [[ $funcstack[1] == _tutti ]]; then _tutti "$@"; else compdef _tutti tutti; fi
)zsh";

std::string zsh_quoted(const std::string& text) { return '\'' + replaced(text, "'", "'\\''") + '\''; }

std::string bracketed(const std::string& doc) {
  return '[' + replaced(replaced(short_doc(doc), "[", "\\["), "]", "\\]") + ']';
}

// An action with a space before it is called without _arguments' own options.
const char* action_of(Kind kind) {
  switch (kind) {
    case Kind::kFiles:
    case Kind::kPaths:
      return "_files";
    case Kind::kFolders:
      return "_files -/";
    case Kind::kRecipes:
      return "_tutti_recipes";
    case Kind::kCommands:
      return "_tutti_commands";
    case Kind::kKeys:
      return " _tutti_words keys";
    case Kind::kNames:
      return " _tutti_words names";
    case Kind::kNouns:
      return " _tutti_words nouns";
    case Kind::kNothing:
      break;
  }
  return " ";
}

std::string zsh_action(const std::string& placeholder) {
  const Offer offer = offer_of(placeholder);
  std::string words;
  for (const auto& word : offer.words) words += (words.empty() ? "" : " ") + word;
  if (words.empty()) return action_of(offer.kind);
  if (offer.kind == Kind::kNothing) return '(' + words + ')';
  return std::string("{ compadd -- ") + words + "; " + action_of(offer.kind) + " }";
}

// '--set=[doc]:KEY=VALUE:action', once for each name.
std::string zsh_option(const DescribedOption& option) {
  std::string out;
  const std::string value =
      option.is_flag() ? "" : ':' + option.placeholder + ':' + zsh_action(option.placeholder);
  for (const auto& name : option.names) {
    const std::string equals = option.is_flag() || !name.starts_with("--") ? "" : "=";
    out += " \\\n        " +
           zsh_quoted((option.repeated ? "*" : "") + name + equals + bracketed(option.doc) + value);
  }
  return out;
}

std::string zsh_arguments(const DescribedCommand& command) {
  std::string out = "_arguments -s";
  for (const auto& option : command.named()) out += zsh_option(option);
  int place = 0;
  for (const auto& option : command.positionals()) {
    const std::string number = option.repeated ? "*" : std::to_string(++place);
    out += " \\\n        " + zsh_quoted(number + (option.required ? ":" : "::") + option.names[0] + ':' +
                                        zsh_action(option.placeholder));
  }
  return out;
}

std::string commands_function(const std::vector<DescribedCommand>& commands) {
  std::string out = "_tutti_commands() {\n  local -a commands\n  commands=(\n";
  for (const auto& command : commands)
    if (!command.name.empty()) out += "    " + zsh_quoted(command.name + ':' + command.doc) + '\n';
  return out + "  )\n  _describe -t commands command commands\n}\n";
}

}  // namespace

std::string zsh_completion(const std::vector<DescribedCommand>& commands) {
  std::string top = "_arguments -C", cases;
  for (const auto& command : commands) {
    if (command.name.empty()) {
      for (const auto& option : command.named()) top += zsh_option(option);
    } else {
      cases += "      " + command.name + ")\n      " + zsh_arguments(command) + " ;;\n";
    }
  }
  return std::string(kZshHead) + "  " + top +
         " \\\n        '1:command:_tutti_commands' \\\n        '*::argument:->argument'\n"
         "  [[ $state == argument ]] && case $words[1] in\n" +
         cases + "  esac\n}\n\n" + commands_function(commands) + kZshTail;
}

}  // namespace tutti
