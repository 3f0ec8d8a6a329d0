#include "cli/help/described.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "runtime/error.h"

namespace tutti {
namespace {

using OfferKind = Offer::Kind;

const std::map<std::string, OfferKind>& placeholders() {
  static const std::map<std::string, OfferKind> kinds = {
      {"RECIPE", OfferKind::kRecipes},      {"PLAN", OfferKind::kRecipes},
      {"RUN", OfferKind::kFolders},         {"RUN_A", OfferKind::kFolders},
      {"RUN_B", OfferKind::kFolders},       {"RUN_DIR", OfferKind::kFolders},
      {"DIR", OfferKind::kFolders},         {"FOLDER", OfferKind::kFolders},
      {"D", OfferKind::kFolders},           {"PATH", OfferKind::kPaths},
      {"DATA", OfferKind::kPaths},          {"FILE", OfferKind::kFiles},
      {"COMMAND", OfferKind::kCommands},    {"KEY=VALUE", OfferKind::kKeys},
      {"NAME", OfferKind::kNames},          {"WHAT", OfferKind::kNouns},
      {"N", OfferKind::kNothing},           {"R", OfferKind::kNothing},
      {"LABEL", OfferKind::kNothing},       {"step=N", OfferKind::kNothing},
      {"FIRST..LAST", OfferKind::kNothing}, {"PROMPT", OfferKind::kNothing},
      {"METRIC", OfferKind::kNothing},      {"KEY=A,B,...", OfferKind::kKeys},
      {"KEY=RANGE", OfferKind::kKeys},      {"CONDITION", OfferKind::kNothing},
      {"TEXTS", OfferKind::kFiles},         {"VALUE", OfferKind::kNothing},
      {"COLUMN", OfferKind::kNothing},      {"NEW", OfferKind::kNothing},
      {"CKPT", OfferKind::kPaths}};
  return kinds;
}

bool is_word(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= 'a' && c <= 'z'; });
}

// Without what validators add: "INT:INT in [1 - 9]" is INT.
std::string type_name(const CLI::Option& option) {
  const std::string whole = option.get_type_name();
  return whole.substr(0, whole.find(':'));
}

// CLI11 gives options without a type name their C++ type; a positional is then known by its own name. A
// transformed option has the description of its validator: "TEXT:step=N".
std::string placeholder_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  const std::string type = type_name(option);
  const bool is_plain = type == "TEXT" || type == "INT" || type == "UINT" || type.empty();
  if (!is_plain) return type;
  if (option.get_positional() && !option.nonpositional()) return option.get_name(true);
  const std::string whole = option.get_type_name();
  return whole.size() > type.size() ? whole.substr(type.size() + 1) : whole;
}

DescribedOption described(const CLI::Option& option) {
  DescribedOption out;
  out.positional = option.get_positional() && !option.nonpositional();
  if (out.positional) out.names.push_back(option.get_name(true));
  for (const auto& name : option.get_snames()) out.names.push_back('-' + name);
  for (const auto& name : option.get_lnames()) out.names.push_back("--" + name);
  out.placeholder = placeholder_of(option);
  out.doc = option.get_description();
  out.required = option.get_required();
  out.repeated = option.get_items_expected_max() > 1;
  return out;
}

std::vector<std::string> example_lines(const std::string& footer) {
  std::vector<std::string> lines;
  std::istringstream in(footer);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("  ")) lines.push_back(line.substr(2));
  return lines;
}

DescribedCommand described(const CLI::App& app, const std::string& name) {
  DescribedCommand command{name, app.get_description(), {}, example_lines(app.get_footer())};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) command.options.push_back(described(*option));
  return command;
}

std::vector<DescribedOption> filtered(const std::vector<DescribedOption>& options, bool positional) {
  std::vector<DescribedOption> out;
  for (const auto& option : options)
    if (option.positional == positional) out.push_back(option);
  return out;
}

}  // namespace

Offer offer_of(const std::string& placeholder) {
  Offer offer;
  std::istringstream in(placeholder);
  for (std::string part; std::getline(in, part, '|');) {
    const auto known = placeholders().find(part);
    TUTTI_ASSERT(known != placeholders().end() || is_word(part), "no completion for " + placeholder);
    if (known != placeholders().end()) {
      offer.kind = known->second;
    } else {
      offer.words.push_back(part);
    }
  }
  return offer;
}

std::vector<DescribedOption> DescribedCommand::positionals() const { return filtered(options, true); }

std::vector<DescribedOption> DescribedCommand::named() const { return filtered(options, false); }

std::vector<DescribedCommand> describe(const CLI::App& app) {
  std::vector<DescribedCommand> commands = {described(app, "")};
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) commands.push_back(described(*command, command->get_name()));
  return commands;
}

}  // namespace tutti
