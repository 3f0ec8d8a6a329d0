#pragma once

#include <string>
#include <vector>

#include "data/readers/options.h"
#include "recipe/options.h"

// Keys that several kinds of datasets have. Free of libtorch.
namespace tutti {

inline constexpr double kMaxSampleSize = 1e9;  // numbers, tokens, classes

template <class Options>
Bound<Options> path_option(const char* doc) {
  return option<Options>("path", &Options::path, doc).as(KeyType::kPath).required();
}

template <class Options>
Bound<Options> classes_option(const char* doc) {
  return option<Options>("num_classes", &Options::num_classes, doc)
      .may_be_absent()
      .at_least(1)
      .at_most(kMaxSampleSize);
}

template <class Options>
Bound<Options> mask_values_option() {
  return option<Options>("mask_values", &Options::mask_values,
                         "of masks: the pixels' value of each class, in the order of the classes, such as "
                         "[0, 255]; default: the values are the classes")
      .may_be_absent()
      .at_least(0)
      .at_most(255);
}

// How image files are read.
template <class Options>
std::vector<Bound<Options>> image_read_keys() {
  return {
      option<Options>("on_bad_sample", &Options::on_bad_sample,
                      "what an image that cannot be read does; skip: the next one that can be read takes "
                      "its place, and the run says how many at its end",
                      {{"error", OnBadSample::kError}, {"skip", OnBadSample::kSkip}}),
      option<Options>("max_image_pixels", &Options::max_image_pixels,
                      "an image with more pixels, by its header, is one that cannot be read; each worker may "
                      "take 8 bytes for each of them")
          .at_least(1)
          .at_most(1 << 30),
      option<Options>("scaled_decoding", &Options::scaled_decoding,
                      "decode JPEGs at 1/2, 1/4 or 1/8 of their size where the first transform makes them "
                      "smaller still: faster, and not quite the same pixels")};
}

}  // namespace tutti
