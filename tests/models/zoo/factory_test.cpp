#include "models/zoo/factory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/zoo/catalog.h"
#include "models/zoo/gpt.h"
#include "tests/recipe/section.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::monostate kNone;

Setting mlp(Setting::Value in_features, Setting::Value num_classes) {
  return section_with({{"kind", std::string("mlp")},
                       {"hidden", list_value({int64_t{7}})},
                       {"in_features", std::move(in_features)},
                       {"num_classes", std::move(num_classes)},
                       {"activation", std::string("relu")}});
}

Setting gpt(int64_t n_positions, int64_t n_head) {
  return section_with({{"kind", std::string("gpt")},
                       {"vocab_size", int64_t{256}},
                       {"n_positions", n_positions},
                       {"n_embd", int64_t{32}},
                       {"n_layer", int64_t{1}},
                       {"n_head", n_head},
                       {"dropout", 0.0}});
}

const SampleSpec kImages{.shapes = {{"input", {1, 8, 8}}, {"target", {}}}, .classes = 10};
const SampleSpec kText{.shapes = {{"input", {64}}, {"target", {64}}}, .classes = 256};

TEST(Factory, TakesWhatTheRecipeLeavesOutFromTheData) {
  const auto model = make_model(mlp(kNone, kNone), kImages);
  const auto all = parameters(*model);
  EXPECT_EQ(all.front().parameter->tensor.size(1), 64);
  EXPECT_EQ(all.back().parameter->tensor.size(0), 10);
}

TEST(Factory, MoreClassesThanTheDataHasAreFine) {
  EXPECT_EQ(parameters(*make_model(mlp(kNone, int64_t{12}), kImages)).back().parameter->tensor.size(0), 12);
}

TEST(Factory, DisagreementWithTheDataNamesKeyAndBothValues) {
  EXPECT_THAT([] { make_model(mlp(int64_t{65}, kNone), kImages); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("in_features = 65"), HasSubstr("64"))));
  EXPECT_THAT([] { make_model(mlp(kNone, int64_t{9}), kImages); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("num_classes = 9"), HasSubstr("up to 9"))));
}

TEST(Factory, AnErrorForOtherNamesSaysHowToNameThem) {
  SampleSpec samples{
      {{"images", {1, 8, 8}}, {"labels", {}}}, 10, {{"images", at::kFloat}, {"labels", at::kByte}}};
  const auto making = [&] { make_model(mlp(kNone, kNone), samples); };
  EXPECT_THAT(
      making,
      ThrowsMessage<UserError>(AllOf(
          HasSubstr("no array 'input', which this model reads; it has 'images' (float32 [1, 8, 8] a sample)"),
          HasSubstr("data.train.arrays = { input = \"images\", target = \"labels\" }"))));
  samples.shapes["more"] = {};
  EXPECT_THAT(making, ThrowsMessage<UserError>(HasSubstr("data.train.arrays = { input = \"...\" }")));
}

TEST(Factory, AnErrorForUnfitImagesNamesTheKey) {
  const Setting resnet =
      section_with({{"kind", std::string("resnet_cifar")}, {"depth", int64_t{20}}, {"width", int64_t{2}}});
  const auto images = [](const Shape& shape, at::ScalarType dtype) {
    return SampleSpec{{{"input", shape}, {"target", {}}}, 10, {{"input", dtype}, {"target", at::kLong}}};
  };
  const auto refusing = [&](const SampleSpec& samples, const std::string& hint) {
    EXPECT_THAT([&] { make_model(resnet, samples); }, ThrowsMessage<UserError>(HasSubstr(hint)));
  };
  refusing(images({32, 32, 3}, at::kByte), "data.train.layout = \"NHWC\"");
  refusing(images({32, 32, 3}, at::kByte), "\"NCHW\" if the file has [channels, height, width]");
  for (const int64_t channels : {1, 2, 3, 4})
    refusing(images({channels, 32, 32}, at::kByte), "data.train.layout = \"NCHW\", with");
  refusing(images({32, 32, 3}, at::kFloat),
           "[32, 32, 3] a sample, which looks like [height, width, channels]");
  EXPECT_NO_THROW(make_model(resnet, images({3, 32, 32}, at::kFloat)));
}

// Asked once surgery is done: it may have changed the model's positions.
TEST(Factory, SequencesLongerThanTheModelsPositionsNameKeyAndBothValues) {
  const auto requiring = [](const Setting& section, const SampleSpec& samples) {
    return [=] { require_positions(section, *make_model(section, samples), samples); };
  };
  EXPECT_NO_THROW(requiring(gpt(64, 4), kText)());
  EXPECT_THAT(requiring(gpt(32, 4), kText),
              ThrowsMessage<UserError>(AllOf(HasSubstr("n_positions = 32"), HasSubstr("64 tokens"))));
  EXPECT_NO_THROW(requiring(mlp(kNone, kNone), kImages)());
  const auto built_for_32 = make_model(gpt(32, 4), kText);
  EXPECT_THAT([&] { require_positions(gpt(16, 4), *built_for_32, kText); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("kind = \"gpt\""), HasSubstr("at most 32"))));
}

TEST(Factory, HeadsMustDivideTheWidth) {
  EXPECT_THAT([] { make_model(gpt(64, 5), kText); }, ThrowsMessage<UserError>(HasSubstr("n_head = 5")));
}

TEST(Factory, GptRefusesImages) {
  EXPECT_THAT([] { make_model(gpt(64, 4), kImages); }, ThrowsMessage<UserError>(HasSubstr("[1, 8, 8]")));
}

SampleSpec with(SampleSpec spec, const std::string& array, const Shape& shape, at::ScalarType dtype) {
  spec.shapes[array] = shape;
  spec.dtypes[array] = dtype;
  return spec;
}

TEST(Factory, ClassifiersReadFloat32AndAClassIndex) {
  const auto refuses = [](const SampleSpec& spec, const std::string& what) {
    EXPECT_THAT([&] { make_model(mlp(kNone, kNone), spec); },
                ThrowsMessage<UserError>(AllOf(HasSubstr("kind = \"mlp\""), HasSubstr(what))));
  };
  EXPECT_NO_THROW(make_model(mlp(kNone, kNone), with(kImages, "input", {4}, at::kFloat)));
  refuses(with(kImages, "input", {28, 28}, at::kByte),
          "expected 'input' as float32; the data's is uint8 [28, 28]");
  refuses(with(kImages, "input", {4}, at::kLong), "int64 [4]");
  refuses(with(kImages, "input", {}, at::kFloat), "float32 number");
  refuses(with(kImages, "input", {3, 0}, at::kFloat), "float32 [3, 0]");
  refuses(with(kImages, "input", {int64_t{1} << 40, int64_t{1} << 40}, at::kFloat), "too large");
  refuses(with(kImages, "target", {}, at::kFloat),
          "expected 'target' as a class index (an integer) a sample; the data's is float32 number "
          "a sample");
  refuses(with(kImages, "target", {10}, at::kLong), "int64 [10]");
  refuses(with(kImages, "target", {0}, at::kLong), "int64 [0]");
  refuses({.shapes = {{"input", {4}}}, .classes = 10}, "no array 'target'");
}

TEST(Factory, GptReadsTokensAndAsManyTargets) {
  const auto refuses = [](const SampleSpec& spec, const std::string& what) {
    EXPECT_THAT([&] { make_model(gpt(64, 4), spec); },
                ThrowsMessage<UserError>(AllOf(HasSubstr("kind = \"gpt\""), HasSubstr(what))));
  };
  EXPECT_NO_THROW(make_model(gpt(64, 4), with(kText, "input", {64}, at::kLong)));
  refuses(with(kText, "input", {64}, at::kFloat),
          "expected 'input' as a sequence of int64 tokens; the data's is float32 [64] a sample");
  refuses(with(kText, "input", {64}, at::kByte), "uint8 [64]");
  refuses(with(kText, "target", {}, at::kLong), "expected 'target' as int64 tokens [64]");
  refuses(with(kText, "target", {64}, at::kFloat), "float32 [64]");
}

TEST(Factory, TokensBeyondTheVocabularyAreRefused) {
  SampleSpec spec = kText;
  spec.classes = 257;
  EXPECT_THAT([&] { make_model(gpt(64, 4), spec); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("vocab_size = 256"), HasSubstr("tokens up to 256"))));
}

TEST(Factory, DataWithoutAnInputIsNamed) {
  EXPECT_THAT([] { make_model(mlp(kNone, kNone), {}); }, ThrowsMessage<UserError>(HasSubstr("'input'")));
}

Setting bert(const std::string& kind, std::vector<std::pair<std::string, Setting::Value>> keys) {
  Setting section = smallest_section(model_catalog(), kind);
  for (auto& [name, value] : keys) section.find(name)->value = std::move(value);
  return section;
}

const SampleSpec kMasked{.shapes = {{"input_ids", {64}}, {"labels", {64}}},
                         .classes = 256,
                         .dtypes = {{"input_ids", at::kLong}, {"labels", at::kLong}}};

TEST(Factory, BertReadsTokensAndLabelsByTransformersNamesOrByTuttis) {
  const auto refuses = [](const std::string& kind, const SampleSpec& spec, const std::string& what) {
    EXPECT_THAT([&] { make_model(bert(kind, {}), spec); }, ThrowsMessage<UserError>(HasSubstr(what)));
  };
  EXPECT_NO_THROW(make_model(bert("bert_mlm", {}), kMasked));
  EXPECT_NO_THROW(make_model(bert("bert_mlm", {}), kText));
  EXPECT_NO_THROW(make_model(bert("bert_mlm", {}), with(kMasked, "attention_mask", {64}, at::kByte)));
  refuses("bert_mlm", kImages, "expected 'input' as a sequence of int64 tokens");
  refuses("bert_mlm", with(kMasked, "labels", {}, at::kLong),
          "expected 'labels' as int64 tokens [64], one for each of 'input_ids'");
  refuses("bert_mlm", with(kMasked, "attention_mask", {63}, at::kLong), "expected 'attention_mask' as [64]");
  refuses("bert_classification", kMasked, "expected 'labels' as a class index");
  SampleSpec labelled = with(kMasked, "labels", {}, at::kLong);
  labelled.classes = 0;
  EXPECT_NO_THROW(make_model(bert("bert_classification", {}), labelled));
  labelled.classes = 3;
  EXPECT_THAT(
      [&] {
        make_model(bert("bert_classification", {{"num_classes", int64_t{2}}}), labelled);
      },
      ThrowsMessage<UserError>(
          HasSubstr("num_classes = 2: expected at least 3: the data has targets up to 2")));
  EXPECT_NO_THROW(make_model(bert("bert_classification", {}), with(kText, "target", {}, at::kLong)))
      << "the classes of 'input' are tokens";
}

TEST(Factory, BertHasAnOutputForEachTargetThatItsLossTakes) {
  const auto outputs = [](const std::string& loss, const SampleSpec& spec) {
    const auto model = make_model(bert("bert_classification", {{"loss", loss}}), spec);
    return parameters(*model).back().parameter->tensor.size(0);
  };
  const SampleSpec classes = with(kMasked, "labels", {}, at::kLong);
  EXPECT_EQ(outputs("cross_entropy", with({.shapes = kMasked.shapes}, "labels", {}, at::kLong)), 2);
  EXPECT_EQ(outputs("cross_entropy", classes), 256);
  for (const char* name : {"labels", "target"}) {
    SampleSpec texts{{{"input_ids", {64}}}, 0, {{"input_ids", at::kLong}}};
    EXPECT_EQ(outputs("mse", with(texts, name, {}, at::kFloat)), 1);
    EXPECT_EQ(outputs("smooth_l1", with(texts, name, {5}, at::kFloat)), 5);
    EXPECT_EQ(outputs("bce_with_logits", with(texts, name, {5}, at::kFloat)), 5);
    EXPECT_EQ(outputs("bce_with_logits", with(texts, name, {5}, at::kLong)), 5);
    EXPECT_THAT([&] { outputs("cross_entropy", with(texts, name, {}, at::kFloat)); },
                ThrowsMessage<UserError>(AllOf(HasSubstr(std::string("expected '") + name + "' as a class"),
                                               HasSubstr("\"mse\" takes values"))));
  }
}

TEST(Factory, BertsKeysFitOneAnother) {
  EXPECT_THAT(
      [] {
        make_model(bert("bert_mlm", {{"num_attention_heads", int64_t{5}}}), kMasked);
      },
      ThrowsMessage<UserError>(HasSubstr("expected a divisor of hidden_size, 768")));
  EXPECT_THAT(
      [] {
        make_model(bert("bert_mlm", {{"vocab_size", int64_t{255}}}), kMasked);
      },
      ThrowsMessage<UserError>(HasSubstr("tokens up to 255")));
  EXPECT_THAT(
      [] {
        make_model(bert("bert_mlm", {{"pad_token_id", int64_t{30522}}}), kMasked);
      },
      ThrowsMessage<UserError>(HasSubstr("expected a token below vocab_size")));
  EXPECT_THAT(
      [] {
        const Setting section = bert("bert_mlm", {{"max_position_embeddings", int64_t{32}}});
        require_positions(section, *make_model(section, kMasked), kMasked);
      },
      ThrowsMessage<UserError>(AllOf(HasSubstr("max_position_embeddings = 32"), HasSubstr("64 tokens"))));
}

}  // namespace
}  // namespace tutti
