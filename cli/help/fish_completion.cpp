#include "cli/help/described.h"
#include "cli/help/shell_text.h"

namespace tutti {
namespace {

using Kind = Offer::Kind;

constexpr const char* kFishHead = R"(# fish completion of tutti; `tutti completion fish` writes it.
function __tutti_words
    set -l words (commandline -opc)
    $words[1] completion --words $argv[1] 2>/dev/null
end
function __tutti_command
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test "$words[2]" = $argv[1]
end
function __tutti_no_command
    test (count (commandline -opc)) -eq 1
end
complete -c tutti -f
)";

std::string fish_quoted(const std::string& text) {
  return '\'' + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + '\'';
}

std::string arguments_of(Kind kind, const std::string& commands) {
  switch (kind) {
    case Kind::kFiles:
    case Kind::kPaths:
      return "-F";
    case Kind::kFolders:
      return "-a '(__fish_complete_directories)'";
    case Kind::kRecipes:
      return "-a '(__fish_complete_suffix .toml)'";
    case Kind::kCommands:
      return "-a " + fish_quoted(commands);
    case Kind::kKeys:
      return "-a '(__tutti_words keys)'";
    case Kind::kNames:
      return "-a '(__tutti_words names)'";
    case Kind::kNouns:
      return "-a '(__tutti_words nouns)'";
    case Kind::kNothing:
      break;
  }
  return "";
}

std::string fish_offer(const std::string& placeholder, const std::string& commands) {
  const Offer offer = offer_of(placeholder);
  std::string words;
  for (const auto& word : offer.words) words += (words.empty() ? "" : " ") + word;
  const std::string of_kind = arguments_of(offer.kind, commands);
  if (words.empty()) return of_kind;
  return "-a " + fish_quoted(words) + (of_kind.empty() ? "" : ' ' + of_kind);
}

std::string names_of(const DescribedOption& option) {
  std::string out;
  for (const auto& name : option.names)
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  return out;
}

std::string line(const std::string& condition, const std::string& rest) {
  return "complete -c tutti -n " + fish_quoted(condition) + rest + '\n';
}

std::string option_line(const DescribedOption& option, const std::string& condition,
                        const std::string& commands) {
  std::string rest = names_of(option);
  if (!option.is_flag()) rest += " -r " + fish_offer(option.placeholder, commands);
  return line(condition, rest + " -d " + fish_quoted(short_doc(option.doc)));
}

std::string lines_of(const DescribedCommand& command, const std::string& commands) {
  const std::string condition =
      command.name.empty() ? "__tutti_no_command" : "__tutti_command " + command.name;
  std::string out;
  if (!command.name.empty())
    out = line("__tutti_no_command", " -a " + command.name + " -d " + fish_quoted(command.doc));
  for (const auto& option : command.named()) out += option_line(option, condition, commands);
  for (const auto& option : command.positionals()) {
    const std::string offer = fish_offer(option.placeholder, commands);
    if (!offer.empty()) out += line(condition, ' ' + offer);
  }
  return out;
}

}  // namespace

std::string fish_completion(const std::vector<DescribedCommand>& commands) {
  std::string names;
  for (const auto& command : commands) names += (names.empty() ? "" : " ") + command.name;
  std::string out = kFishHead;
  for (const auto& command : commands) out += lines_of(command, names);
  return out;
}

}  // namespace tutti
