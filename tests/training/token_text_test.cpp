#include "training/token_text.h"

#include <gtest/gtest.h>

#include "data/tokenizers/tokenizer.h"

namespace tutti {
namespace {

// BERT's normalizer leaves nothing of the line break that begins a text of its own.
TEST(TokenText, OfAnEmptyPromptHasAToken) {
  const auto bert = tokenizer_as_text(Tokenizer::read(TUTTI_SOURCE_DIR "/tests/golden/tokenizers/bert.json"));
  EXPECT_EQ(bert->encode("").size(), 1U);
  EXPECT_EQ(bert->encode("\u200b").size(), 1U);
}

}  // namespace
}  // namespace tutti
