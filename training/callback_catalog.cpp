#include "training/catalog.h"

namespace tutti {

Catalog callback_catalog() {
  return {.section = "callbacks",
          .noun = "callback",
          .doc = "What watches the training and logs what it sees. Names and meanings are Composer's.",
          .entries = {{"lr_monitor", "Logs the learning rate of every step; Composer's LRMonitor."}},
          .repeated = true};
}

}  // namespace tutti
