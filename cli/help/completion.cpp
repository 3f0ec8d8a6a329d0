#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "cli/command_line.h"
#include "cli/help/described.h"
#include "job/names/foreign_names.h"
#include "job/recipe_catalogs.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using OfferKind = Offer::Kind;
using Words = std::vector<std::pair<std::string, std::string>>;  // with their descriptions
using SortedWords = std::map<std::string, std::string>;

constexpr const char* kBash = R"bash(# bash completion of tutti; `tutti completion bash` writes it.
_tutti() {
  local cur=${COMP_WORDS[COMP_CWORD]} one
  local -a lines
  [[ $cur == = ]] && cur=  # bash cuts --option=value into three words
  mapfile -t lines < <("${COMP_WORDS[0]/#\~/$HOME}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=()
  [[ ${lines[0]} != words ]] && compopt -o filenames 2>/dev/null
  case ${lines[0]} in
    files) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    folders) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    recipes) mapfile -t COMPREPLY < <(compgen -d -- "$cur"; compgen -f -X '!*.toml' -- "$cur") ;;
  esac
  for one in "${lines[@]:1}"; do
    one=${one%%$'\t'*}
    [[ $one == -* ]] && one=${one%=}
    [[ $one == "$cur"* ]] && COMPREPLY+=("$one")
  done
  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
}
complete -F _tutti tutti
)bash";

constexpr const char* kZsh = R"zsh(#compdef tutti
# zsh completion of tutti; `tutti completion zsh` writes it.
_tutti() {
  local one
  local -a lines closed open
  lines=("${(@f)$("${(Q)words[1]/#\~/$HOME}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  compset -P 1 '--*='
  case $lines[1] in
    files) _files ;;
    folders) _files -/ ;;
    recipes) _files -g '*.toml' ;;
  esac
  for one in $lines[2,-1]; do
    one=${${one//:/\\:}/$'\t'/:}
    if [[ ${one%%:*} == *= ]]; then open+=($one); else closed+=($one); fi
  done
  _describe -t words word closed -- open -S ''
}
if [[ $funcstack[1] == _tutti ]]; then _tutti "$@"; else compdef _tutti tutti; fi
)zsh";

constexpr const char* kFish = R"fish(# fish completion of tutti; `tutti completion fish` writes it.
function __tutti
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l lines ($words[1] __complete $words[2..] "$last" 2>/dev/null)
    set -l begin (string match -r '^--[^=]+=' -- "$last")
    set -l value (string replace -r '^--[^=]+=' '' -- "$last")
    begin
        switch "$lines[1]"
            case files
                complete -C "__tutti_files $value"
            case folders
                complete -C "__tutti_files $value" | string match -r '.*/$'
            case recipes
                complete -C "__tutti_files $value" | string match -r '.*(?:/|\.toml)$'
        end
        string replace -r '^(--[^\t]*)=\t' '$1\t' -- $lines[2..]
    end | string replace -r -- '^' "$begin"
end
complete -c tutti -f -a '(__tutti)'
)fish";

// The description up to its first ": ", "; " or " (", for the narrow column of a completion menu.
std::string short_doc(const std::string& doc) {
  return doc.substr(0, std::min({doc.find("; "), doc.find(": "), doc.find(" (")}));
}

void add_keys(SortedWords& words, const std::string& section, const std::vector<Key>& keys) {
  for (const auto& key : keys)
    if (!key.refused())
      words.emplace((section.empty() ? "" : section + '.') + key.name + '=', short_doc(key.doc));
}

// All keys that --set may name without an index, of every kind.
SortedWords recipe_keys() {
  SortedWords words;
  for (const auto& catalog : recipe_catalogs()) {
    if (catalog.repeated) continue;
    add_keys(words, catalog.section, catalog.keys);
    for (const auto& entry : catalog.entries) add_keys(words, catalog.section, entry.keys);
    if (!catalog.entries.empty()) words.emplace(catalog.section + ".kind=", "");
  }
  return words;
}

SortedWords explained_names() {
  SortedWords words;
  for (const auto& catalog : all_catalogs()) {
    if (!catalog.section.empty()) words.emplace(catalog.section, short_doc(catalog.doc));
    for (const auto& entry : catalog.entries) {
      words.emplace(entry.name, short_doc(entry.doc));
      for (const auto& key : entry.keys) words.emplace(key.name, short_doc(key.doc));
    }
    for (const auto& key : catalog.keys) words.emplace(key.name, short_doc(key.doc));
  }
  for (const ForeignName& composer : composer_names()) words.emplace(composer.name, "");
  return words;
}

SortedWords nouns() {
  SortedWords words;
  for (const auto& catalog : all_catalogs())
    if (!catalog.noun.empty()) words.emplace(catalog.noun + 's', "");
  return words;
}

Words names_of(const std::vector<DescribedCommand>& commands) {
  Words words;
  for (const auto& command : commands)
    if (!command.name.empty()) words.emplace_back(command.name, command.doc);
  return words;
}

// Long options that take a value end with "=".
Words options_of(const DescribedCommand& command) {
  Words words;
  for (const auto& option : command.named())
    for (const auto& name : option.names)
      words.emplace_back(name + (option.is_flag() || !name.starts_with("--") ? "" : "="),
                         short_doc(option.doc));
  return words;
}

Words words_of(const Offer& offer, const std::string& begun, const std::vector<DescribedCommand>& commands) {
  Words words;
  for (const auto& word : offer.words) words.emplace_back(word, "");
  const auto add = [&words](const auto& more) { words.insert(words.end(), more.begin(), more.end()); };
  if (offer.kind == OfferKind::kCommands) add(names_of(commands));
  if (offer.kind == OfferKind::kKeys && begun.find('=') == begun.npos) add(recipe_keys());
  if (offer.kind == OfferKind::kNames) add(explained_names());
  if (offer.kind == OfferKind::kNouns) add(nouns());
  return words;
}

// What the shell itself looks for.
const char* files_of(OfferKind kind) {
  if (kind == OfferKind::kFiles || kind == OfferKind::kPaths) return "files";
  if (kind == OfferKind::kFolders) return "folders";
  return kind == OfferKind::kRecipes ? "recipes" : "words";
}

std::string completion_text(const std::string& files, const Words& words) {
  std::string text = files + '\n';
  for (const auto& [word, doc] : words) text += word + '\t' + doc + '\n';
  return text;
}

// Joins --option = value, as bash cuts it.
std::vector<std::string> joined_at_equals(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool joins = !out.empty() && (words[i] == "=" || words[i - 1] == "=");
    if (joins)
      out.back() += words[i];
    else
      out.push_back(words[i]);
  }
  return out;
}

// The option that takes a value, or null.
const DescribedOption* valued_option(const DescribedCommand& command, const std::string& name) {
  for (const auto& option : command.options)
    if (!option.positional && !option.is_flag() && std::ranges::count(option.names, name) > 0) return &option;
  return nullptr;
}

// What the words after a command leave open: the option that waits for its value, or null, and the place of
// the next positional argument.
struct OpenArgument {
  const DescribedOption* option = nullptr;
  std::size_t place = 0;
};

OpenArgument open_argument(const DescribedCommand& command, std::span<const std::string> words) {
  OpenArgument open;
  for (const auto& word : words) {
    const bool is_value = open.option != nullptr;
    open.option = is_value ? nullptr : valued_option(command, word);
    if (!is_value && !word.starts_with('-')) ++open.place;
  }
  return open;
}

// The placeholder of a positional argument, the last of which may be repeated; "" = none.
std::string placeholder_at(const DescribedCommand& command, std::size_t place) {
  if (command.name.empty()) return "COMMAND";
  const auto all = command.positionals();
  if (place < all.size()) return all[place].placeholder;
  return !all.empty() && all.back().repeated ? all.back().placeholder : "";
}

int print_script(const std::string& shell) {
  const std::map<std::string, const char*> scripts{{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};
  const auto script = scripts.find(shell);
  if (script == scripts.end())
    throw UserError(shell.empty() ? "expected a shell: bash, zsh or fish"
                                  : shell + ": unknown shell; expected bash, zsh or fish");
  std::fputs(script->second, stdout);
  return 0;
}

}  // namespace

std::string completions(const CLI::App& app, const std::vector<std::string>& typed) {
  const auto commands = describe(app);
  std::vector<std::string> words = joined_at_equals(typed);
  std::string last = words.empty() ? "" : words.back();
  if (!words.empty()) words.pop_back();
  const bool has_command = !words.empty() && !words[0].starts_with('-');
  const auto command = std::ranges::find(commands, has_command ? words[0] : "", &DescribedCommand::name);
  if (command == commands.end()) return completion_text("words", {});
  const std::size_t equals = last.starts_with("--") ? last.find('=') : last.npos;
  if (equals != last.npos) {
    words.push_back(last.substr(0, equals));
    last.erase(0, equals + 1);
  }
  const auto open = open_argument(*command, std::span(words).subspan(has_command ? 1 : 0));
  if (!open.option && equals != last.npos) return completion_text("words", {});  // a flag has no value
  if (!open.option && last.starts_with('-')) return completion_text("words", options_of(*command));
  const Offer offer = offer_of(open.option ? open.option->placeholder : placeholder_at(*command, open.place));
  return completion_text(files_of(offer.kind), words_of(offer, last, commands));
}

void add_completion(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("completion", "Write the completion script of a shell");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "the shell")->type_name("bash|zsh|fish");
  command->callback([&action, shell] { action = [shell] { return print_script(*shell); }; });
}

void add_man(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("man", "Write the man page, in roff");
  command->callback([&app, &action] {
    action = [&app] {
      std::fputs(man_page(describe(app)).c_str(), stdout);
      return 0;
    };
  });
}

}  // namespace tutti
