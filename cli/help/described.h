#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace tutti {

// The values that a placeholder allows: "auto|PATH" is the word auto or a path.
struct Offer {
  enum class Kind {
    kNothing,
    kFiles,
    kFolders,
    kPaths,
    kRecipes,   // *.toml
    kCommands,  // subcommands
    kKeys,      // of recipes: "optimizer.lr="
    kNames,     // that `explain` knows
    kNouns      // that `list` knows
  };
  Kind kind = Kind::kNothing;
  std::vector<std::string> words = {};
};

// The offer of a placeholder (RUN, FILE, KEY=VALUE, auto|PATH, ...). Asserts that the placeholder is known.
Offer offer_of(const std::string& placeholder);

// An option or a positional argument of a command.
struct DescribedOption {
  std::vector<std::string> names;  // "-V", "--version"; of a positional "RUN"
  std::string placeholder;         // of the value; "" for a flag
  std::string doc;
  bool positional = false;
  bool required = false;
  bool repeated = false;

  bool is_flag() const { return placeholder.empty(); }
};

struct DescribedCommand {
  std::string name;  // "" = tutti itself
  std::string doc;
  std::vector<DescribedOption> options;
  std::vector<std::string> examples;

  std::vector<DescribedOption> positionals() const;
  std::vector<DescribedOption> named() const;  // options that are not positional
};

// tutti, then its subcommands, as declared; without hidden options.
std::vector<DescribedCommand> describe(const CLI::App& app);

// The man page tutti(1), in roff.
std::string man_page(const std::vector<DescribedCommand>& commands);

}  // namespace tutti
