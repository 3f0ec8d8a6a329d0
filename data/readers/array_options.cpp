#include <map>
#include <string>
#include <vector>

#include "data/arrays/hdf5_dataset.h"
#include "data/arrays/numpy_arrays.h"
#include "data/readers/opened.h"
#include "data/readers/options.h"
#include "tensors/meter.h"

namespace tutti {
namespace {

// A table has batches' names for those of the file.
void read_array_names(const Setting& arrays, std::vector<std::string>& names,
                      std::map<std::string, std::string>& stored_as) {
  if (!arrays.is_table()) {
    names = arrays.texts();
    return;
  }
  for (const auto& [name, stored] : arrays.table()) {
    if (stored.text().find_first_not_of('/') == std::string::npos)
      stored.fail("expected the name of an array");
    names.push_back(name);
    stored_as[name] = stored.text();
  }
}

}  // namespace

DatasetPtr Hdf5Options::make(const Setting& section, const DataEnvironment& environment) const {
  Hdf5Dataset::Options options{.path = path,
                               .group = group,
                               .num_classes = num_classes,
                               .ignore_index = environment.ignore_index,
                               .cache_bytes = static_cast<std::size_t>(cache_mb * kBytesPerMb)};
  if (arrays) read_array_names(*arrays, options.arrays, options.stored_as);
  return opened(section, [&] {
    const auto dataset = std::make_shared<const Hdf5Dataset>(options);
    dataset->digest();  // reads some rows, so that an unreadable file is an error now
    return dataset;
  });
}

DatasetPtr NumpyOptions::make(const Setting& section, const DataEnvironment& environment) const {
  std::vector<std::string> names;
  std::map<std::string, std::string> stored_as;
  if (arrays) read_array_names(*arrays, names, stored_as);
  return opened(section, [&] {
    return std::make_shared<const ArrayDataset>(
        open_numpy(path, names, stored_as),
        ArrayDataset::Options{.num_classes = num_classes, .ignore_index = environment.ignore_index});
  });
}

}  // namespace tutti
