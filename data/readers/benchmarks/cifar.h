#pragma once

#include <string>

#include "data/dataset.h"
#include "data/readers/options.h"

namespace tutti {

struct CifarOptions {
  enum class Labels { kTen, kFine, kCoarse };  // of CIFAR-10; the 100 or the 20 of CIFAR-100

  std::string path;  // a file; or a folder with the archive's files, or with the archive's folder
  Labels labels = Labels::kTen;
  bool test = false;  // of a folder: the files to test on, not the files to train on
};

// The binary version of CIFAR-10 or CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html), plain or gzip:
// images "input" uint8 [32, 32, 3], labels "target". Throws UserError with file and byte.
DatasetPtr open_cifar(const CifarOptions& options);

}  // namespace tutti
