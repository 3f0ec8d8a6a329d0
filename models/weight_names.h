#pragma once

#include <string>
#include <vector>

namespace tutti {

// The names under which a model may have a tensor that a file calls `name`, the likeliest first: unchanged;
// without the wrappers of DDP, FSDP, torch.compile and Lightning ("module.", "_orig_mod.", "model.");
// LayerNorm's weight and bias as "gamma" and "beta"; with and without "transformer.", "bert." and "model.",
// which transformers' models without a head do not have; tied weights under the name of the other.
std::vector<std::string> names_in_models(const std::string& name);

// True for a weight of an output layer that is tied to another tensor: "lm_head.weight",
// "cls.predictions.decoder.bias". Files may hold it, twice then.
bool is_tied_weight(const std::string& name);

// The tensor that `name` is a copy of in a model with original and copy, where a file has one of the two: the
// token embeddings, of the weights of BERT's decoder; else "".
std::string copied_from(const std::string& name);

// True for a constant that some models save: masks of attention, positions.
bool is_saved_constant(const std::string& name);

// A count of batches, which older files of running statistics do not have.
bool is_batch_count(const std::string& name);

// New names for names that fit a pattern. '*' fits any text; the n-th '*' of the new name is the text of the
// pattern's n-th.
class NamePattern {
 public:
  // Throws UserError if the new name has more '*' than the pattern.
  NamePattern(const std::string& pattern, const std::string& renamed);

  const std::string& text() const { return text_; }
  // The new name; "" if the name does not fit.
  std::string renamed(const std::string& name) const;

 private:
  std::string text_;
  std::vector<std::string> parts_, renamed_;  // between the '*'
};

}  // namespace tutti
