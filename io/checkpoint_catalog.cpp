#include "io/checkpoint_catalog.h"

namespace tutti {

Catalog checkpoint_catalog() {
  using enum KeyType;
  return {.section = "checkpoint",
          .noun = "",
          .doc = "When the run is saved, where, and where it goes on from. The end of a run is always saved.",
          .keys = {
              Key{"interval", kTime, "1ep", "how often; training waits where the disk is slower than that"}
                  .also_named({"save_interval"}),
              {"save_folder", kPath, "none", "where; the run folder's checkpoints/ when absent"},
              Key{"keep", kInteger, "-1", "newest checkpoints that stay; -1 = all"}
                  .also_named({"save_num_checkpoints_to_keep"})
                  .at_least(-1)
                  .at_most(1e9),
              Key{"resume", kPath, "none",
                  "the checkpoint or run folder to go on from; auto: this run's newest, if any"}
                  .also_named({"load_path"})
                  .or_word("auto"),
          }};
}

}  // namespace tutti
