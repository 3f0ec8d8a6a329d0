#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>

#include "recipe/setting.h"
#include "tensors/tree.h"

namespace tutti {

// Checks of samples and sizes for models. All throw UserErrors with the recipe's line.

// Requires the array; returns its shape.
const Shape& shape_of(const Setting& section, const SampleSpec& samples, const std::string& array);
// True if the array has the dtype, or the dataset does not say which.
bool has_dtype(const SampleSpec& samples, const std::string& array, at::ScalarType dtype);
// Refuses the array, which is not as `expected`.
[[noreturn]] void refuse(const Setting& section, const SampleSpec& samples, const std::string& array,
                         const std::string& expected, const std::string& hint = "");

// Requires "input" to be float32 with at least one value per sample; returns its shape.
const Shape& value_input(const Setting& section, const SampleSpec& samples);
// Requires "input" to be images of float32; returns the number of channels.
int64_t image_channels(const Setting& section, const SampleSpec& samples);
// Requires an array of int64 tokens, a sequence a sample; returns its shape.
const Shape& token_sequence(const Setting& section, const SampleSpec& samples, const std::string& array);
// Requires `array` to have a number for each token of `tokens`.
void require_one_a_token(const Setting& section, const SampleSpec& samples, const std::string& array,
                         const std::string& tokens);
// Requires vocab_size to be above all tokens.
void require_vocabulary(const Setting& section, const SampleSpec& samples);
// Requires `heads` to divide the features, which the key `width` names.
void require_heads(const Setting& heads, int64_t features, const char* width);

int64_t positive(const Setting& key);
// The value in the recipe, which must equal the value in the data; the latter if the key is absent.
int64_t agreed_size(const Setting& section, const char* key, int64_t in_data, const std::string& what);
// The recipe's num_classes, or the data's.
int64_t num_classes(const Setting& section, const SampleSpec& samples);
// Numbers in a sample.
int64_t value_count(const Setting& section, const Shape& shape);

}  // namespace tutti
