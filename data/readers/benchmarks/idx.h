#pragma once

#include <string>

#include "data/dataset.h"
#include "data/readers/options.h"
#include "data/transforms/ignore_index.h"

namespace tutti {

// Two IDX files (http://yann.lecun.com/exdb/mnist), plain or gzip: images "input" uint8 [height, width,
// channels], labels "target". Throws UserError with file and byte.
DatasetPtr open_idx(const IdxOptions& options);

// MNIST's files, or a dataset's files of the same names, in a folder or in its "raw" or "MNIST/raw". Throws
// UserError without these files.
IdxOptions mnist_files(const std::string& folder, bool test);

}  // namespace tutti
