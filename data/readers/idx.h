#pragma once

#include <string>

#include "data/dataset.h"
#include "data/transforms/ignore_index.h"

namespace tutti {

struct IdxOptions {
  std::string images;       // uint8 [samples, height, width] or [samples, height, width, channels]
  std::string labels;       // uint8 [samples]
  int64_t num_classes = 0;  // labels are below; 0: the largest label + 1
  int64_t ignore_index = kIgnoredTarget;  // a legal label, whatever num_classes is
};

// Two IDX files (http://yann.lecun.com/exdb/mnist), plain or gzip: images "input" uint8 [height, width,
// channels], labels "target". Throws UserError with file and byte.
DatasetPtr open_idx(const IdxOptions& options);

// MNIST's files, or those of a dataset with the same names, in a folder or in its "raw" or "MNIST/raw".
// Throws UserError if they are not there.
IdxOptions mnist_files(const std::string& folder, bool test);

}  // namespace tutti
