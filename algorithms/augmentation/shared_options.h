#pragma once

#include <string>

#include "data/batch_key.h"
#include "recipe/options.h"

// Keys that several algorithms have. Free of libtorch.
namespace tutti {

template <class Options>
Bound<Options> array_option(const char* name, BatchKey Options::*member, const std::string& what) {
  return option<Options>(
      name, member, "the array of the batch that holds the " + what + ": its name, or its number from 0 on");
}
template <class Options>
Bound<Options> input_array() {
  return array_option<Options>("input_key", &Options::input_key, "inputs");
}
template <class Options>
Bound<Options> target_array() {
  return array_option<Options>("target_key", &Options::target_key, "targets");
}

// A fraction, in [0, 1].
template <class Options>
Bound<Options> fraction(const char* name, double Options::*member, const char* doc) {
  return option<Options>(name, member, doc).at_least(0).at_most(1);
}

}  // namespace tutti
