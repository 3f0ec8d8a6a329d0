#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/init/draft.h"
#include "cli/new_file.h"
#include "data/proposals/look.h"
#include "io/exported/input_sizes.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

struct InitArguments {
  std::string data;
  std::string out = "recipe.toml";
  std::string tokenizer;
  std::string program;
  bool force = false;
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

int init(const InitArguments& arguments) {
  const std::string folder = fs::absolute(arguments.out).parent_path();
  Proposal data =
      placed(arguments.data.empty() ? random_data() : look_at(arguments.data, arguments.tokenizer), folder);
  for (const std::string& remark : data.remarks) print_warning(remark);
  std::string program;
  if (!arguments.program.empty()) {
    program = program_path(arguments.program, folder);
    scale_to_program(data, arguments.program);
  }
  const std::string recipe = draft_recipe(data, program, command_line(arguments), installed_schema());
  if (arguments.out == "-") {
    std::fputs(recipe.c_str(), stdout);
    return 0;
  }
  write_new(arguments.out, recipe, arguments.force);
  const std::string out = on_one_line(arguments.out);
  std::printf("%s: a recipe for %s.\nNext: tutti check %s, then tutti train %s\n", out.c_str(),
              on_one_line(data.summary).c_str(), out.c_str(), out.c_str());
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
      ->add_option("--program", arguments->program,
                   "a model written by Python: torch.export's .pt2, or a file of TorchScript")
      ->type_name("FILE");
  command->add_flag("--force", arguments->force, "overwrite an existing file");
  command->callback([&action, arguments] { action = [=] { return init(*arguments); }; });
}

}  // namespace tutti
