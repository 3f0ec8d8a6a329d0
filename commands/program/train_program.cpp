#include "commands/program/train_program.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/error.h"
#include "runtime/launcher.h"
#include "runtime/nearest_name.h"

namespace tutti {
namespace {

constexpr int kMostRanks = 1024;

constexpr const char* kHelp = R"(  RECIPE              the recipe, a TOML file
  --set KEY=VALUE     set a key of the recipe; may be given several times
  --run-dir DIR       the run's folder (default: runs/ and the recipe's run_name)
  --resume auto|PATH  resume from a checkpoint; auto, the default: the run's newest good one if any
  --local-ranks N     ranks in this one process, without mpirun
  --json              print nothing but the result, as JSON, at the end
  --help              print this text
)";

bool is_option(std::string_view word) { return word.size() > 1 && word.starts_with('-'); }

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// Reads arguments one after the other into the options of a Trainer.
class Arguments {
 public:
  Arguments(Trainer::Options& options, std::span<char*> words)
      : options_(options), words_(words.begin(), words.end()) {}

  void read() {
    while (next_ < words_.size()) {
      const std::string word = words_[next_++];
      if (is_option(word))
        read_option(word);
      else
        take_recipe(word);
    }
    if (options_.recipe.empty()) throw UserError("expected a recipe, a TOML file (see --help)");
  }

 private:
  void read_option(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    require_known(name);
    if (name == "--json" && equals == word.npos)
      options_.json = true;
    else if (name == "--resume" && equals == word.npos)
      read_resume();
    else
      take(name, equals == word.npos ? next_value(name) : word.substr(equals + 1));
  }

  static void require_known(const std::string& name) {
    const std::vector<std::string> known = {"--set",         "--run-dir", "--resume",
                                            "--local-ranks", "--json",    "--help"};
    if (std::ranges::count(known, name) > 0) return;
    const std::string near = nearest_name(name, known);
    throw UserError(name + " was not expected" + (near.empty() ? "" : "; did you mean " + near + "?") +
                    " (see --help)");
  }

  void take(const std::string& name, const std::string& value) {
    if (name == "--json") throw UserError(name + ": no value was expected (see --help)");
    if (value.empty()) throw UserError(name + ": expected a value, not an empty text (see --help)");
    if (name == "--set")
      options_.overrides.push_back(value);
    else if (name == "--run-dir")
      options_.run_dir = value;
    else if (name == "--resume")
      options_.resume = value;
    else
      options_.local_ranks = ranks(value);
  }

  // A recipe behind --resume is no checkpoint.
  void read_resume() {
    options_.resume = "auto";
    if (next_ == words_.size() || is_option(words_[next_])) return;
    if (is_file(words_[next_])) return;
    options_.resume = words_[next_++];
  }

  void take_recipe(const std::string& path) {
    if (has_recipe_) throw UserError(path + " was not expected: the recipe is " + options_.recipe);
    has_recipe_ = true;
    options_.recipe = path;
  }

  std::string next_value(const std::string& name) {
    if (next_ == words_.size()) throw UserError(name + ": expected a value (see --help)");
    return words_[next_++];
  }

  static int ranks(const std::string& text) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > kMostRanks)
      throw UserError("--local-ranks " + text + ": expected a number of ranks, from 1 to " +
                      std::to_string(kMostRanks));
    return number;
  }

  Trainer::Options& options_;
  std::vector<std::string> words_;
  std::size_t next_ = 0;
  bool has_recipe_ = false;
};

std::span<char*> words_of(int argc, char** argv) {
  return std::span(argv, static_cast<std::size_t>(argc)).subspan(argc > 0 ? 1 : 0);
}

bool asks_for_help(int argc, char** argv) {
  return std::ranges::any_of(words_of(argc, argv),
                             [](std::string_view word) { return word == "--help" || word == "-h"; });
}

void print_help(const char* program, const std::string& recipe) {
  if (launched_rank().value_or(0) > 0) return;
  const std::string own =
      recipe.empty() || recipe.find('\n') != recipe.npos ? "" : " (default: " + recipe + ")";
  std::printf("Usage: %s RECIPE [options], or mpirun -np N %s RECIPE [options]%s\n\n%s", program, program,
              own.c_str(), kHelp);
}

}  // namespace

Trainer::Options with_arguments(Trainer::Options options, int argc, char** argv) {
  Arguments(options, words_of(argc, argv)).read();
  return options;
}

int train_program(int argc, char** argv, Trainer::Options options) {
  if (asks_for_help(argc, argv)) {
    print_help(argc > 0 ? argv[0] : "", options.recipe);
    return 0;
  }
  return run_program([&] { return Trainer(with_arguments(std::move(options), argc, argv)).fit(); });
}

}  // namespace tutti
