#pragma once

#include <vector>

#include "recipe/catalog.h"

namespace tutti {

// [[data.train.transforms]], [[data.eval.transforms]] and [[evaluators.transforms]]
Catalog transform_catalog();

inline constexpr double kMostHoles = 1e4;  // that cutout makes in an image

// The keys of transforms that algorithms add too.
std::vector<Key> randaugment_keys();
std::vector<Key> augmix_keys();

}  // namespace tutti
