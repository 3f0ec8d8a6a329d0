#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/init/draft.h"
#include "cli/init/fit.h"
#include "cli/init/network.h"
#include "cli/library_command.h"
#include "cli/new_file.h"
#include "data/proposals/look.h"
#include "io/exported/input_sizes.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"
#include "runtime/workers.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

struct InitArguments {
  std::string data;
  std::string out = "recipe.toml";
  std::string tokenizer;
  std::vector<std::string> targets;
  std::string program;
  std::string network;
  int64_t size = 0;
  bool force = false;
  bool tries = true;
};

// The schema that was installed with this executable; "" in a build tree.
std::string installed_schema() {
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path();
  const fs::path schema = folder / "share/tutti/tutti.schema.json";
  return fs::exists(schema, ignored) ? "file://" + schema.string() : "";
}

std::string command_line(const InitArguments& arguments) {
  return "tutti init" + (arguments.data.empty() ? "" : ' ' + arguments.data);
}

std::string program_path(const std::string& path, const std::string& recipe_folder) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) throw UserError({path}, "no such file");
  return recipe_path(path, recipe_folder);
}

// Pictures get the size that the program takes.
void scale_to_program(Proposal& data, const std::string& path) {
  const std::vector<int64_t> sizes = exported::input_sizes(path);
  auto* images = std::get_if<ImageSamples>(&data.samples);
  if (!images || !images->are_files || sizes.size() != 4) return;
  if (sizes[2] > 0) images->height = sizes[2];
  if (sizes[3] > 0) images->width = sizes[3];
}

void scale(Proposal& data, int64_t size) {
  auto* images = std::get_if<ImageSamples>(&data.samples);
  if (!images || !images->are_files)
    throw UserError("--size: samples of " + data.summary + " have a size of their own");
  images->height = images->width = size;
}

// A size of pictures of many sizes with which an epoch is short; 0 = none.
int64_t faster_size(const Proposal& data, double epoch_s) {
  const auto* images = std::get_if<ImageSamples>(&data.samples);
  return images && images->are_files ? shorter_size(images->height, epoch_s) : 0;
}

std::string advice(const InitArguments& arguments, const Proposal& data, const RecipeCost& cost) {
  if (!is_long(cost.epoch_s)) return "";
  std::string faster;
  const std::string lightest = lightest_network(data, arguments.network);
  if (const int64_t size = faster_size(data, cost.epoch_s); size > 0 && arguments.program.empty())
    faster = "--size " + std::to_string(size) + " is faster, and ";
  else if (!lightest.empty() && arguments.program.empty())
    faster = "--model " + lightest + " is faster, and ";
  return "This is long: " + faster + "--set train.max_duration=100ba trains 100 steps.\n";
}

// Tries the written recipe, and writes it anew if pictures of another size, or threads that read them, suit
// this machine better. Returns what the training costs, as text.
std::string fit_to_machine(const InitArguments& arguments, Proposal& data, DraftOptions& draft) {
  RecipeCost cost;
  const auto measure = [&] { run_in_library(CostOptions{.recipe = {.path = arguments.out}, .cost = &cost}); };
  measure();
  std::string text;
  const bool is_chosen = arguments.size > 0 || !arguments.program.empty() || !arguments.network.empty();
  const int64_t size = is_chosen ? 0 : faster_size(data, cost.epoch_s);
  const int64_t threads = threads_for(cost.load_ms, cost.batch_ms, usable_cores());
  if (size > 0) {
    const std::string old = std::to_string(std::get<ImageSamples>(data.samples).height);
    text = "An epoch with pictures of " + old + " pixels a side would take " +
           formatted("%.0f", cost.epoch_s / 60) + " minutes here: the recipe has " + std::to_string(size) +
           "; --size " + old + " keeps the larger.\n";
    scale(data, size);
  }
  if (size > 0 || threads > 0) {
    draft.num_workers = threads;
    write_new(arguments.out, draft_recipe(data, draft), /*force=*/true);
    measure();
  }
  return text + cost.text + '\n' + advice(arguments, data, cost);
}

int init(const InitArguments& arguments) {
  const std::string folder = fs::absolute(arguments.out).parent_path();
  Proposal data =
      placed(arguments.data.empty() ? random_data()
                                    : look_at(arguments.data, {arguments.tokenizer, arguments.targets}),
             folder);
  for (const std::string& remark : data.remarks) print_warning(remark);
  DraftOptions draft = {
      .network = arguments.network, .command = command_line(arguments), .schema = installed_schema()};
  if (!arguments.program.empty()) {
    draft.program = program_path(arguments.program, folder);
    scale_to_program(data, arguments.program);
  }
  if (arguments.size > 0) scale(data, arguments.size);
  const std::string recipe = draft_recipe(data, draft);
  if (arguments.out == "-") {
    std::fputs(recipe.c_str(), stdout);
    return 0;
  }
  write_new(arguments.out, recipe, arguments.force);
  const std::string out = on_one_line(arguments.out);
  std::printf("%s: a recipe for %s.\n", out.c_str(), on_one_line(data.summary).c_str());
  std::fflush(stdout);
  if (arguments.tries) try {
      std::fputs(fit_to_machine(arguments, data, draft).c_str(), stdout);
    } catch (const std::exception& error) {
      print_warning(std::string("a try of the recipe failed: ") + error.what());
    }
  std::printf("Next: tutti check %s, then tutti train %s\n", out.c_str(), out.c_str());
  return 0;
}

}  // namespace

void add_init(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("init", "Write a commented recipe for a data file, without questions");
  auto arguments = std::make_shared<InitArguments>();
  command->add_option("DATA", arguments->data,
                      "an HDF5 file, a table (.csv, .tsv, .parquet), arrays of numpy, a text, JSON lines, a "
                      "file of tokens, or a "
                      "folder of images, tar files, CIFAR, MNIST or IDX files "
                      "(default: random data)");
  command
      ->add_option("--out", arguments->out, "the recipe to write; -: standard output (default: recipe.toml)")
      ->type_name("FILE");
  command
      ->add_option("--tokenizer", arguments->tokenizer,
                   "for texts: Hugging Face's tokenizer.json, or its folder (default: the one beside them)")
      ->type_name("FILE");
  command
      ->add_option(
          "--target", arguments->targets,
          "for tables: the column to predict; of pictures also several columns of numbers: count,area")
      ->delimiter(',')
      ->type_name("COLUMN");
  command
      ->add_option("--program", arguments->program,
                   "a model written by Python: torch.export's .pt2, or a file of TorchScript")
      ->type_name("FILE");
  auto* program = command->get_option("--program");
  command
      ->add_option(
          "--model", arguments->network,
          "the network: gpt, llama, mistral, qwen3, bert, resnet50, vit, mlp, ...; a wrong name lists "
          "those that suit the data (default: a small one)")
      ->type_name("NAME")
      ->excludes(program);
  command
      ->add_option(
          "--size", arguments->size,
          "of pictures, which are scaled: pixels a side (default: 224, or less where those are slow)")
      ->type_name("N")
      ->check(CLI::Range(8, 4096));
  command->add_flag("!--no-try", arguments->tries,
                    "do not try steps of the recipe, for the time that they take");
  command->add_flag("--force", arguments->force, "overwrite an existing file");
  command->callback([&action, arguments] { action = [=] { return init(*arguments); }; });
}

}  // namespace tutti
