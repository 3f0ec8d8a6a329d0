#include "io/checkpoint/checkpoint_catalog.h"

namespace tutti {
namespace {

using enum KeyType;

std::shared_ptr<const Catalog> best() {
  return std::make_shared<Catalog>(
      Catalog{.section = "checkpoint.best",
              .noun = "best",
              .doc = "Which checkpoints are the best.",
              .keys = {{"metric", kText, "",
                        "a metric of an evaluation: metrics/eval/MulticlassAccuracy, or its name alone"},
                       Key{"mode", kText, "auto",
                           "which values are better; auto, by its name: min for a loss, error, mse, mae, "
                           "perplexity or cross entropy, else max"}
                           .one_of({"auto", "max", "min"}),
                       Key{"keep", kInteger, "1", "how many"}.at_least(1).at_most(1e6)}});
}

std::vector<Key> save_keys() {
  return {
      Key{"interval", kTime, "1ep", "time between checkpoints; training waits if the disk is slower"}
          .also_named({"save_interval"}),
      {"save_folder", kPath, "none",
       "the folder of the checkpoints; default: checkpoints/ in the run folder"},
      {"save_filename", kText, "ep{epoch}-ba{batch}",
       "the name of a checkpoint's folder; {run_name}, {epoch}, {batch}, {batch_in_epoch}, {sample}, "
       "{sample_in_epoch}, {token}, {token_in_epoch}, {total_wct} and {epoch_wct} (seconds) and "
       "{world_size} are filled in; {rank} is not allowed, since a checkpoint has a file for each rank"},
      {"save_latest_filename", kText, "latest",
       "the name of the link to the newest checkpoint; {run_name} is filled in; empty: no link"},
      {"save_overwrite", kBoolean, "false",
       "true: checkpoints of another run in save_folder are moved aside; false: they are an error"},
      {"save_weights_only", kBoolean, "false", "saves only the model; the run cannot be resumed from it"},
      {"save_ignore_keys", kTexts, "[]",
       "patterns of names that are not saved, like optimizers/* (docs/checkpoints.md has the names)"},
      Key{"keep", kInteger, "-1", "number of newest checkpoints to keep; -1 = all"}
          .also_named({"save_num_checkpoints_to_keep"})
          .at_least(-1)
          .at_most(1e9),
      Key{"best", kTable, "none",
          "keeps the best checkpoints, whatever `keep` says. An evaluation that is one of the best is "
          "followed "
          "by a checkpoint; the link `best` leads to the best"}
          .each(best()),
      {"save_metrics", kBoolean, "true",
       "the state of metrics is always saved, since a resumed run needs it; false is an error"},
  };
}

std::vector<Key> load_keys() {
  return {
      Key{"resume", kPath, "none",
          "the checkpoint, folder of checkpoints or run folder to start from; auto: this run's newest, if "
          "any"}
          .also_named({"load_path"})
          .or_word("auto"),
      {"autoresume", kBoolean, "false",
       "resume from this run's newest checkpoint, or from load_path if there is none; needs run_name and "
       "save_folder"},
      {"load_weights_only", kBoolean, "false", "load only the model from load_path; time begins at 0"},
      {"load_strict_model_weights", kBoolean, "true",
       "false: weights missing in load_path or in the model are ignored, with a warning"},
      {"load_ignore_keys", kTexts, "[]",
       "patterns of names in load_path to ignore, like state/model/layer1* or optimizers/*"},
      {"load_exclude_algorithms", kTexts, "[]",
       "names of algorithms: their state is not loaded from load_path, and surgery that its weights need is "
       "not done"},
      Key{"load_progress_bar", kBoolean, "none", ""}.not_carried_over(
          "a checkpoint is read from a local disk, which is fast"),
      Key{"load_object_store", kAny, "none", ""}.not_carried_over(
          "load_path is a path; copy from the store first, with its own tool"),
  };
}

}  // namespace

Catalog checkpoint_catalog() {
  std::vector<Key> keys = save_keys();
  for (Key& key : load_keys()) keys.push_back(std::move(key));
  return {.section = "checkpoint",
          .noun = "",
          .doc = "Saving and resuming. The end of a run is always saved.",
          .keys = std::move(keys)};
}

}  // namespace tutti
