#include "commands/import.h"

#include <filesystem>

#include "commands/loaded_model.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "io/foreign/foreign_checkpoint.h"
#include "job/resume.h"
#include "runtime/error.h"
#include "training/saved_tensors.h"

namespace tutti {
namespace {

constexpr const char* kUnfinished = ".importing";

Checkpoint checkpoint_to_import(const Disk& disk, const std::string& path) {
  if (!disk.exists(path)) throw UserError({path}, "there is no such file or folder");
  if (!is_foreign_checkpoint(disk, path))
    throw UserError(
        {path},
        "is no checkpoint of another program: looked for a file of torch.save, and in the folder for "
        ".metadata (torch.distributed.checkpoint), model.safetensors and pytorch_model.bin "
        "(Hugging Face), whole or with an .index.json");
  return foreign_checkpoint(disk, path);
}

std::string folder_for(const Job& job, const RunState& state, const std::string& out) {
  return out.empty() ? job.checkpoints + '/' + job.settings.checkpoint.set.names.at(state)
                     : out.substr(0, out.find_last_not_of('/') + 1);
}

void write_checkpoint(Disk& disk, const Trainee& trainee, const RunState& state, const std::string& folder,
                      const std::string& latest) {
  if (disk.exists(folder)) throw UserError({folder}, "exists already; --out names another folder");
  const std::string unfinished = folder + kUnfinished;
  CheckpointManifest manifest{{write_rank_file(disk, unfinished, 0, checkpoint_pieces(trainee))},
                              state.to_json()};
  publish_checkpoint(disk, unfinished, folder, manifest, latest);
}

}  // namespace

std::string import_text(const Setting& recipe, const ImportOptions& options) {
  return blame_recipe(recipe, [&]() -> std::string {
    PosixDisk disk;
    const Checkpoint foreign = checkpoint_to_import(disk, options.path);
    const Job job = single_process_job(recipe, 1, "", options.path);
    if (job.from.options.weights_only)
      throw UserError(
          {options.path},
          "the recipe says load_weights_only = true: a run with this path as load_path starts from "
          "the weights alone, and tutti import writes whole checkpoints");
    LoadedModel model(job, foreign, job.from.options, Setting(options.path, "CKPT", {"command line"}));
    std::string text;
    model.engine.run_event(Event::kBeforeLoad);
    add_listener_tensors(model.state, model.engine);
    RunState state = resume(model.state, disk, foreign, job, job.from.options,
                            [&](const std::string& line) { text += line + '\n'; });
    model.engine.run_event(Event::kAfterLoad);
    state.imported = {};
    state.required_algorithms = model.state.required_algorithms;
    state.names_before_surgery = names_before_surgery(model.state);
    const std::string folder = folder_for(job, state, options.out);
    write_checkpoint(disk, model.state, state, folder,
                     options.out.empty() ? job.settings.checkpoint.set.latest : "");
    return text + "written to " + folder + "; " +
           (options.out.empty()
                ? "tutti train with --resume auto"
                : "[checkpoint] load_path = \"" + std::filesystem::absolute(folder).string() + "\"") +
           " continues from it\n";
  });
}

}  // namespace tutti
