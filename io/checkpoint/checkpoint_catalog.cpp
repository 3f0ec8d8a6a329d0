#include "io/checkpoint/checkpoint_catalog.h"

namespace tutti {
namespace {

using enum KeyType;

std::vector<Key> save_keys() {
  return {
      Key{"interval", kTime, "1ep", "how often; training waits where the disk is slower than that"}
          .also_named({"save_interval"}),
      {"save_folder", kPath, "none", "where; the run folder's checkpoints/ when absent"},
      {"save_filename", kText, "ep{epoch}-ba{batch}",
       "the name of a checkpoint's folder; {run_name}, {epoch}, {batch}, {batch_in_epoch}, {sample}, "
       "{sample_in_epoch}, {token}, {token_in_epoch}, {total_wct} and {epoch_wct} (seconds) and "
       "{world_size} are put in, but no {rank}: a checkpoint holds a file of each"},
      {"save_latest_filename", kText, "latest",
       "the name of the link to the newest one; {run_name} is put in; an empty text: no link"},
      {"save_overwrite", kBoolean, "false",
       "true: checkpoints of another run that are in the way are put aside; false: they are an error"},
      {"save_weights_only", kBoolean, "false",
       "the model alone is saved; no run can be gone on with from that"},
      {"save_ignore_keys", kTexts, "[]",
       "what is left out: name patterns like optimizers/* (docs/checkpoints.md has the names)"},
      Key{"keep", kInteger, "-1", "newest checkpoints that stay; -1 = all"}
          .also_named({"save_num_checkpoints_to_keep"})
          .at_least(-1)
          .at_most(1e9),
      {"save_metrics", kBoolean, "true",
       "what metrics have come to is in every checkpoint, since a run that goes on needs it; false is an "
       "error"},
  };
}

std::vector<Key> load_keys() {
  return {
      Key{"resume", kPath, "none",
          "the checkpoint, or the folder of checkpoints or of a run, to start from; auto: this run's newest, "
          "if "
          "any"}
          .also_named({"load_path"})
          .or_word("auto"),
      {"autoresume", kBoolean, "false",
       "go on from this run's newest checkpoint, and from load_path only when there is none; needs run_name "
       "and "
       "save_folder"},
      {"load_weights_only", kBoolean, "false", "of load_path the model alone; time begins at 0"},
      {"load_strict_model_weights", kBoolean, "true",
       "false: weights that load_path lacks, or that the model does not have, are told and passed over"},
      {"load_ignore_keys", kTexts, "[]",
       "what of load_path is passed over: name patterns like state/model/layer1* or optimizers/*"},
      {"load_exclude_algorithms", kTexts, "[]",
       "algorithms whose state is not taken from load_path, by name: EMA"},
      Key{"load_progress_bar", kBoolean, "none", ""}.not_carried_over(
          "a checkpoint lies on a disk and is read at its speed"),
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
          .doc = "When the run is saved, where, and where it goes on from. The end of a run is always saved.",
          .keys = std::move(keys)};
}

}  // namespace tutti
