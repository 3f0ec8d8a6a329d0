#include <memory>
#include <optional>
#include <string>

#include "data/arrays/hdf5_dataset.h"
#include "data/arrays/numpy_arrays.h"
#include "data/readers/opened.h"
#include "data/readers/options.h"
#include "tensors/memory/meter.h"

namespace tutti {
namespace {

// Of an array that lies in groups: "/" alone names none.
ArrayNames stored_names(const std::optional<Setting>& arrays) {
  if (!arrays) return {};
  if (arrays->is_table())
    for (const auto& [name, stored] : arrays->table())
      if (stored.text().find_first_not_of('/') == std::string::npos)
        stored.fail("expected the name of an array");
  return array_names(*arrays);
}

// True if the section normalizes "input", and nothing stands between.
bool normalizes(const Setting& section) {
  const DataSettings data = DataSettings::read(section);
  const bool has_numbers = !data.mean->empty() || !data.std->empty() || !data.scale->empty();
  return data.transforms.is_none() && has_numbers;
}

}  // namespace

DatasetPtr Hdf5Options::make(const Setting& section, const DataEnvironment& environment) const {
  Hdf5Dataset::Options options{.path = path,
                               .group = group,
                               .num_classes = num_classes,
                               .ignore_index = environment.ignore_index,
                               .keeps_float64 = normalizes(section),
                               .cache_bytes = static_cast<std::size_t>(cache_mb * kBytesPerMb)};
  for (const auto& [name, stored] : stored_names(arrays)) {
    options.arrays.push_back(name);
    options.stored_as[name] = stored;
  }
  return opened(section, [&] {
    const auto dataset = std::make_shared<const Hdf5Dataset>(options);
    dataset->digest();  // reads some rows, so that an unreadable file is an error now
    return dataset;
  });
}

DatasetPtr NumpyOptions::make(const Setting& section, const DataEnvironment& environment) const {
  const ArrayNames names = stored_names(arrays);
  return opened(section, [&] {
    return std::make_shared<const ArrayDataset>(
        open_numpy(path, names), ArrayDataset::Options{.num_classes = num_classes,
                                                       .ignore_index = environment.ignore_index,
                                                       .keeps_float64 = normalizes(section)});
  });
}

}  // namespace tutti
