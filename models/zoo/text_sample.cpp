#include "models/zoo/text_sample.h"

#include "runtime/error.h"

namespace tutti {

std::string sample_text(Gpt& model, const std::string& prompt, const TextSampleOptions& options) {
  TUTTI_ASSERT(model.vocabulary() <= 256, "the model's tokens are no bytes");
  GenerationOptions how{.max_new_tokens = options.length, .top_k = 0};
  how.do_sample = options.temperature > 0.0;
  if (how.do_sample) how.temperature = options.temperature;
  Prompt from{{}, Draw(options.seed, "text sample")};
  for (const char c : prompt.empty() ? "\n" : prompt) from.tokens.push_back(static_cast<unsigned char>(c));
  const Tokens added = model.generate({from}, how).front();
  std::string text;
  for (const int64_t token : added) text += static_cast<char>(token);
  return text;
}

}  // namespace tutti
