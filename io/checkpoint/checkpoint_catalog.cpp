#include "io/checkpoint/checkpoint_catalog.h"

namespace tutti {
namespace {

using Keys = CheckpointKeys;

constexpr const char* kRemoteExample = "s3://bucket/folder";  // any scheme does

std::shared_ptr<const Catalog> best_catalog() {
  Catalog catalog = section_catalog<BestKeys>();
  catalog.noun = "best";
  return std::make_shared<const Catalog>(std::move(catalog));
}

std::vector<Bound<Keys>> save_keys() {
  return {
      option("interval", &Keys::interval, "time between checkpoints; training waits if the disk is slower")
          .also_named({"save_interval"}),
      option("save_folder", &Keys::save_folder,
             "the folder of the checkpoints; default: checkpoints/ in the run folder. With s3://... they are "
             "copied there from checkpoints/ in the run folder, by [remote] ({run_name} is filled in)")
          .as(KeyType::kPath)
          .or_word(kRemoteExample),
      option(
          "save_filename", &Keys::save_filename,
          "the name of a checkpoint's folder; {run_name}, {epoch}, {batch}, {batch_in_epoch}, {sample}, "
          "{sample_in_epoch}, {token}, {token_in_epoch}, {total_wct} and {epoch_wct} (seconds) and "
          "{world_size} are filled in; {rank} is not allowed, since a checkpoint has a file for each rank"),
      option("save_latest_filename", &Keys::save_latest_filename,
             "the name of the link to the newest checkpoint; {run_name} is filled in; empty: no link"),
      option("save_overwrite", &Keys::save_overwrite,
             "true: checkpoints of another run in save_folder are moved aside; false: they are an error")
          .as(KeyType::kBoolean)
          .written("false"),
      option("save_weights_only", &Keys::save_weights_only,
             "saves only the model; the run cannot be resumed from it"),
      option("save_ignore_keys", &Keys::save_ignore_keys,
             "patterns of names that are not saved, like optimizers/* (docs/checkpoints.md has the names)"),
      option("keep", &Keys::keep, "number of newest checkpoints to keep; -1 = all")
          .also_named({"save_num_checkpoints_to_keep"})
          .at_least(-1)
          .at_most(1e9),
      option("best", &Keys::best_table,
             "keeps the best checkpoints, whatever `keep` says. An evaluation that is one of the best is "
             "followed by a checkpoint; the link `best` leads to the best")
          .each(best_catalog())
          .as(KeyType::kTable),
      option("save_metrics", &Keys::save_metrics,
             "the state of metrics is always saved, since a resumed run needs it; false is an error"),
  };
}

std::vector<Bound<Keys>> load_keys() {
  return {
      option("resume", &Keys::resume,
             "the checkpoint, folder of checkpoints or run folder to start from, or a checkpoint of "
             "Composer, Lightning, transformers or PyTorch; auto: this run's newest, if any")
          .as(KeyType::kPath)
          .also_named({"load_path"})
          .or_word("auto")
          .or_word(kRemoteExample),
      option("autoresume", &Keys::autoresume,
             "resume from this run's newest checkpoint, or from load_path if there is none; needs run_name "
             "and save_folder"),
      option("load_weights_only", &Keys::load_weights_only,
             "load only the model from load_path; time begins at 0"),
      option("load_strict_model_weights", &Keys::load_strict_model_weights,
             "false: weights missing in load_path or in the model are ignored, with a warning"),
      option("load_ignore_keys", &Keys::load_ignore_keys,
             "patterns of names in load_path to ignore, like state/model/layer1* or optimizers/*"),
      option("load_exclude_algorithms", &Keys::load_exclude_algorithms,
             "names of algorithms: their state is not loaded from load_path, and surgery that its weights "
             "need is not done"),
      Key{"load_progress_bar", KeyType::kBoolean, "none", ""}.not_carried_over(
          "a checkpoint is read from a local disk, which is fast"),
      Key{"load_object_store", KeyType::kAny, "none", ""}.not_carried_over(
          "load_path = \"s3://...\" names store and path, and [remote] the program that fetches"),
  };
}

}  // namespace

Kind<BestKeys> BestKeys::kind() {
  return {"checkpoint.best",
          "Which checkpoints are the best.",
          {option("metric", &BestKeys::metric,
                  "a metric of an evaluation: metrics/eval/MulticlassAccuracy, or its name alone")
               .as(KeyType::kText)
               .required(),
           option("mode", &BestKeys::mode,
                  "which values are better; auto, by its name: min for a loss, error, mse, mae, "
                  "perplexity or cross entropy, else max")
               .one_of({"auto", "max", "min"}),
           option("keep", &BestKeys::keep, "how many").at_least(1).at_most(1e6)}};
}

Kind<CheckpointKeys> CheckpointKeys::kind() {
  return {"checkpoint", "Saving and resuming. The end of a run is always saved.",
          with_keys(save_keys(), load_keys())};
}

}  // namespace tutti
