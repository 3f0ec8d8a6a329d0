#include "models/zoo/factory.h"

#include <string>

#include "models/layers/attention.h"
#include "models/zoo/options.h"
#include "models/zoo/sample_checks.h"

namespace tutti {

std::shared_ptr<Model> make_model(const Setting& section, const SampleSpec& samples) {
  if (ModelPtr made = ModelKinds::made<ModelPtr>(section, samples)) return made;
  const Setting& kind = section.at("kind");
  kind.fail(kind.text() == "program" ? "the program that reads the recipe brings no model"
                                     : "there is no such model");
}

int64_t overlong_sequences(Layer& model, const SampleSpec& samples) {
  const int64_t longest = longest_sequence(model);
  for (const char* array : {"input_ids", "input", "positive_ids", "negative_ids"}) {
    const auto shape = samples.shapes.find(array);
    const bool tokens =
        shape != samples.shapes.end() && shape->second.size() == 1 && has_dtype(samples, array, at::kLong);
    if (longest > 0 && tokens && shape->second[0] > longest) return shape->second[0];
  }
  return 0;
}

void require_positions(const Setting& section, Layer& model, const SampleSpec& samples) {
  const int64_t tokens = overlong_sequences(model, samples), longest = longest_sequence(model);
  if (tokens == 0) return;
  const std::string length = std::to_string(tokens);
  for (const char* key : {"n_positions", "max_position_embeddings"})
    if (section.has(key) && section.at(key).integer() == longest)
      section.at(key).fail("expected at least " + length + ": the data has sequences of " + length +
                           " tokens");
  section.at("kind").fail("the data has sequences of " + length + " tokens; the model takes at most " +
                          std::to_string(longest));
}

}  // namespace tutti
