#include <algorithm>
#include <iterator>
#include <utility>

#include "data/readers/options.h"

namespace tutti {
namespace {

constexpr double kMostHeldOut = 1e15;

}  // namespace

Kind<SplitOptions> SplitOptions::kind() {
  using Options = SplitOptions;
  return {
      kSplitKind,
      "A share of [data.train]'s samples, which training never sees, for all kinds of data that can count "
      "their "
      "samples. [data.eval] with split = 0.1 needs no kind.",
      {option("split", &Options::split,
              "the share of the samples, 0.1, or their number, 500; classes keep their shares")
           .required()
           .more_than(0)
           .at_most(kMostHeldOut),
       option("split_seed", &Options::split_seed,
              "draws the samples: the same seed and data, the same samples; when absent the recipe's seed, "
              "or 0")
           .may_be_absent()
           .at_least(0),
       option("split_by", &Options::split_by,
              "a column of a table or of mds, or an array: samples with an equal value stay together, in one "
              "of the two parts")
           .may_be_absent()}};
}

bool suits_held_out(const Setting& transform) {
  constexpr const char* kSuiting[] = {"resize",    "center_crop", "to_tensor",
                                      "normalize", "mask_tokens", "next_token"};
  const Setting* kind = transform.is_table() ? transform.find("kind") : nullptr;
  return kind && kind->is_text() && std::ranges::find(kSuiting, kind->text()) != std::end(kSuiting);
}

Setting held_out_transforms(const Setting& transforms, const std::string& path) {
  Setting::Array kept;
  for (const Setting& transform : transforms.array())
    if (suits_held_out(transform)) kept.push_back(transform);
  return Setting(std::move(kept), path, transforms.position);
}

Kind<SamplerOptions> SamplerOptions::kind() {
  using Options = SamplerOptions;
  return {"",
          "",
          {option("sampler", &Options::sampler,
                  "draws samples with replacement, as many as there are in an epoch; balanced: each class is "
                  "equally likely; weighted: by sampler_weights or sampler_column; when absent, each sample "
                  "comes once an epoch")
               .may_be_absent()
               .one_of({"balanced", "weighted"}),
           option("sampler_weights", &Options::sampler_weights,
                  "for sampler = \"weighted\": the weight of a sample of each class")
               .may_be_absent()
               .at_least(0),
           option("sampler_column", &Options::sampler_column,
                  "for sampler = \"weighted\": a column of a table or of mds, or an array, with a weight for "
                  "each sample")
               .may_be_absent()}};
}

}  // namespace tutti
