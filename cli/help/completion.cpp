#include <cstdio>
#include <memory>
#include <set>

#include "cli/command_line.h"
#include "cli/help/described.h"
#include "job/composer_names.h"
#include "job/recipe_catalogs.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using Words = std::set<std::string>;

void add_keys(Words& words, const std::string& section, const std::vector<Key>& keys) {
  for (const auto& key : keys)
    if (!key.refused()) words.insert((section.empty() ? "" : section + '.') + key.name + '=');
}

// All keys that --set may name without an index, of every kind.
Words recipe_keys() {
  Words words;
  for (const auto& catalog : recipe_catalogs()) {
    if (catalog.repeated) continue;
    add_keys(words, catalog.section, catalog.keys);
    for (const auto& entry : catalog.entries) add_keys(words, catalog.section, entry.keys);
    if (!catalog.entries.empty()) words.insert(catalog.section + ".kind=");
  }
  return words;
}

Words explained_names() {
  Words words;
  for (const auto& catalog : all_catalogs()) {
    if (!catalog.section.empty()) words.insert(catalog.section);
    for (const auto& entry : catalog.entries) {
      words.insert(entry.name);
      for (const auto& key : entry.keys) words.insert(key.name);
    }
    for (const auto& key : catalog.keys) words.insert(key.name);
  }
  for (const auto& one : composer_names()) words.insert(one.name);
  return words;
}

Words nouns() {
  Words words;
  for (const auto& catalog : all_catalogs())
    if (!catalog.noun.empty()) words.insert(catalog.noun + 's');
  return words;
}

int print_words(const std::string& what) {
  const Words words = what == "keys" ? recipe_keys() : what == "names" ? explained_names() : nouns();
  for (const auto& word : words) std::puts(word.c_str());
  return 0;
}

int print_script(const CLI::App& app, const std::string& shell) {
  const auto commands = describe(app);
  const std::string script = shell == "bash"  ? bash_completion(commands)
                             : shell == "zsh" ? zsh_completion(commands)
                                              : fish_completion(commands);
  std::fputs(script.c_str(), stdout);
  return 0;
}

int complete(const CLI::App& app, const std::string& shell, const std::string& words) {
  if (!words.empty()) return print_words(words);
  if (shell == "bash" || shell == "zsh" || shell == "fish") return print_script(app, shell);
  throw UserError(shell.empty() ? "expected a shell: bash, zsh or fish"
                                : shell + ": unknown shell; expected bash, zsh or fish");
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("completion", "Write the completion script of a shell");
  auto shell = std::make_shared<std::string>();
  auto words = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "the shell")->type_name("bash|zsh|fish");
  command->add_option("--words", *words, "for the scripts: keys, names or nouns")
      ->check(CLI::IsMember({"keys", "names", "nouns"}))
      ->group("");
  command->callback([&app, &action, shell, words] {
    action = [&app, shell, words] { return complete(app, *shell, *words); };
  });
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
