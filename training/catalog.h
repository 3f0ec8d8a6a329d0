#pragma once

#include "runtime/catalog.h"

namespace tutti {

// The recipe's top level, [optimizer], [scheduler], [train], [compat], [[callbacks]] and [[loggers]].
Catalog run_catalog();
Catalog optimizer_catalog();
Catalog scheduler_catalog();
Catalog train_catalog();
Catalog callback_catalog();
Catalog precision_catalog();
Catalog logger_catalog();
Catalog compat_catalog();

// What models measure and the log names, each with its keys; not a section of the recipe, shown by `tutti
// list metrics`.
Catalog metric_catalog();

}  // namespace tutti
