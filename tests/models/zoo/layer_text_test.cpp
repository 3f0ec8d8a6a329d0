#include "models/zoo/layer_text.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers/conv.h"
#include "models/layers/norm.h"
#include "models/layers/pool.h"
#include "models/layers/statistics_rows.h"
#include "models/zoo/catalog.h"
#include "models/zoo/factory.h"
#include "models/zoo/mlp.h"
#include "recipe/resolve.h"
#include "runtime/error.h"
#include "tensors/autograd.h"
#include "tests/recipe/section.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<Shape> shapes_of(const std::string& text) {
  std::vector<Shape> shapes;
  for (const auto& one : parameters(*make_layer(text))) shapes.push_back(one.parameter->tensor.sizes().vec());
  return shapes;
}

TEST(LayerText, IsTakenAsTorchPrintsIt) {
  EXPECT_EQ(shapes_of("Linear(in_features=64, out_features=32, bias=True)"),
            (std::vector<Shape>{{32, 64}, {32}}));
  const auto layer =
      make_layer("Conv2d(8, 12, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), groups=4, bias=False)");
  const Conv2dOptions& conv = dynamic_cast<const Conv2d&>(*layer).options();
  EXPECT_EQ(conv.in_channels, 8);
  EXPECT_EQ(conv.out_channels, 12);
  EXPECT_EQ(conv.kernel_size, 3);
  EXPECT_EQ(conv.stride, 2);
  EXPECT_EQ(conv.padding, 1);
  EXPECT_EQ(conv.groups, 4);
  EXPECT_FALSE(conv.bias);
  EXPECT_EQ(shapes_of("BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)"),
            (std::vector<Shape>{{8}, {8}}));
  EXPECT_EQ(shapes_of("LayerNorm((16,), eps=1e-05, elementwise_affine=True)"),
            (std::vector<Shape>{{16}, {16}}));
  for (const char* text : {"ReLU()", "Flatten(start_dim=1, end_dim=-1)", "AdaptiveAvgPool2d(output_size=1)",
                           "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
                           "Dropout(p=0.3, inplace=False)", "GELU(approximate='tanh')", "Tanh()",
                           "AvgPool2d(kernel_size=2, stride=2, padding=0)", "Sigmoid()", "Identity()",
                           "SiLU()", "SiLU(inplace=True)", "LeakyReLU(negative_slope=0.01)"})
    EXPECT_TRUE(shapes_of(text).empty()) << text;
}

TEST(LayerText, ArgumentsReachTheLayer) {
  const at::Tensor x = at::randn({5, 3});
  EXPECT_TRUE(make_layer("GELU()")->forward(x).tensor().equal(at::gelu(x)));
  EXPECT_TRUE(make_layer("GELU(approximate='tanh')")->forward(x).tensor().equal(at::gelu(x, "tanh")));
  const at::Tensor image = at::randn({4, 3, 5, 5});
  const at::Tensor pooled = make_layer("AdaptiveAvgPool2d((4, 2))")->forward(image).tensor();
  EXPECT_TRUE(pooled.equal(at::adaptive_avg_pool2d(image, {4, 2})));
  const auto norm = make_layer("BatchNorm2d(3, eps=0.5, momentum=0.25)");
  materialise(*norm, 1);
  std::vector<RunningStatistics> found;
  const ForwardContext training{.training = true, .statistics = &found};
  set_context(*norm, &training);
  const at::Tensor mean = at::full({3}, 0.0F), variance = at::full({3}, 1.0F);
  const at::Tensor want = at::batch_norm(image, {}, {}, mean, variance, true, 0.25, 0.5, false);
  EXPECT_TRUE(at::allclose(norm->forward(image).tensor(), want, 1e-5, 1e-6));
  apply(found.at(0));
  EXPECT_TRUE(at::allclose(norm->own_buffers()[0]->tensor, mean, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(norm->own_buffers()[1]->tensor, variance, 1e-5, 1e-6));
}

TEST(LayerText, SizesMayBeProducts) {
  EXPECT_EQ(shapes_of("Linear(28*28, 2 * 3 * 4)"), (std::vector<Shape>{{24, 784}, {24}}));
  for (const char* text :
       {"Linear(28*, 3)", "Linear(*3, 3)", "Linear(3**2, 3)", "Linear(4000000000*4000000000, 3)"})
    EXPECT_THROW(make_layer(text), UserError) << text;
}

TEST(LayerText, LayersMayStandInLayers) {
  const auto layer =
      make_layer("Residual(Linear(4, 4), Concat(Linear(4, 1), Linear(4, 3), dim=-1), shortcut=Linear(4, 4))");
  std::vector<std::string> names;
  for (const auto& one : parameters(*layer)) names.push_back(one.name);
  EXPECT_THAT(names,
              testing::ElementsAre("main.0.weight", "main.0.bias", "main.1.0.weight", "main.1.0.bias",
                                   "main.1.1.weight", "main.1.1.bias", "shortcut.weight", "shortcut.bias"));
  const auto fails = [](const char* text, const char* why) {
    EXPECT_THAT([&] { make_layer(text); }, ThrowsMessage<UserError>(HasSubstr(why))) << text;
  };
  fails("Residual()", "Residual: expected layers in the parentheses");
  fails("Concat(Linear(4, 1), side=2)", "there is no argument side; expected one of dim");
  fails("Concat(dim=1, Linear(4, 1))", "a layer follows a named argument");
  fails("Sequential(Linear(4, 1), Lineer(1, 1))", "there is no layer 'Lineer'");
  fails("Residual(Linear(4, x))", "Residual: Linear: argument out_features: expected an integer, found x");
}

TEST(LayerText, RecurrentLayersRefuseInputsOfOtherSizes) {
  for (const char* text : {"LSTM(8, 4, batch_first=True)", "GRU(8, 4, batch_first=True)"}) {
    const auto layer = make_layer(text);
    materialise(*layer, 1);
    EXPECT_EQ(layer->forward(at::zeros({2, 5, 8})).tensor().sizes(), (Shape{2, 5, 4}));
    for (const Shape& shape : {Shape{2, 8}, Shape{2, 5, 9}, Shape{2, 5, 4}, Shape{2, 1, 5, 8}})
      EXPECT_THROW(layer->forward(at::zeros(shape)), UserError) << text << ' ' << shape.size();
  }
}

TEST(LayerText, AnEmbeddingStartsAsTorchsDoes) {
  const auto layer = make_layer("Embedding(100, 50)");
  materialise(*layer, 1);
  EXPECT_NEAR(parameters(*layer)[0].parameter->tensor.std().item<double>(), 1.0, 0.05);
}

TEST(LayerText, TheLastRecurrentLayerDropsNothing) {
  const at::Tensor x = at::linspace(-1, 1, 2 * 5 * 8).view({2, 5, 8});
  for (const std::string kind : {"LSTM", "GRU"}) {
    const auto one = make_layer(kind + "(8, 4, batch_first=True, dropout=0.5)");
    const auto two = make_layer(kind + "(8, 4, 2, batch_first=True, dropout=0.5)");
    materialise(*one, 1);
    materialise(*two, 1);
    EXPECT_TRUE(one->forward(x).tensor().ne(0).all().item<bool>()) << kind;
    EXPECT_FALSE(two->forward(x).tensor().equal(two->forward(x).tensor())) << kind << " drops between";
  }
}

TEST(LayerText, RecurrentLayersTrainInLowPrecision) {
  const at::Tensor x = at::linspace(-1, 1, 2 * 5 * 8).view({2, 5, 8});
  for (const char* text : {"LSTM(8, 4, batch_first=True)", "GRU(8, 4, 2, batch_first=True)"}) {
    const auto layer = make_layer(text);
    materialise(*layer, 1);
    const at::Tensor exact = layer->forward(x).tensor();
    for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
      const AutocastScope scope(dtype);
      const at::Tensor found = layer->forward(x).tensor();
      EXPECT_TRUE(at::allclose(found.to(at::kFloat), exact, 0.02, 0.02)) << text << ' ' << dtype;
      found.to(at::kFloat).sum().backward();
    }
  }
}

TEST(LayerText, DeepNestingIsRefused) {
  std::string text = "ReLU()";
  for (int i = 0; i < 20000; ++i) text = "Sequential(" + text + ")";
  EXPECT_THAT([&] { make_layer(text); }, ThrowsMessage<UserError>(HasSubstr("nested too deeply")));
}

TEST(LayerText, AFirstEmbeddingReadsTokens) {
  const Setting section =
      section_with({{"kind", std::string("sequential")},
                    {"layers", Setting::Array{{std::string("Embedding(20, 6)"), "", {}},
                                              {std::string("LSTM(6, 4, batch_first=True)"), "", {}},
                                              {std::string("Select(1, -1)"), "", {}},
                                              {std::string("Linear(4, 3)"), "", {}}}}});
  SampleSpec samples{.shapes = {{"input", {7}}, {"target", {}}}, .classes = 3};
  samples.dtypes = {{"input", at::kLong}, {"target", at::kLong}};
  const auto model = make_model(resolve_section(model_catalog(), section, {}), samples);
  materialise(*model, 1);
  Batch batch;
  batch.set("input", at::arange(14).view({2, 7}));
  EXPECT_EQ(model->forward(batch).tensor().sizes(), (Shape{2, 3}));
}

TEST(LayerText, ArgumentsThatNewLayersDoNotTakeAreRefused) {
  const auto fails = [](const char* text, const char* why) {
    EXPECT_THAT([&] { make_layer(text); }, ThrowsMessage<UserError>(HasSubstr(why))) << text;
  };
  fails("LSTM(4, 5)", "argument batch_first: only True is supported");
  fails("LSTM(4, 5, batch_first=True, proj_size=2)", "argument proj_size: only 0 is supported");
  fails("GRU(4, 5, batch_first=True, dropout=1.5)", "argument dropout: expected a number in [0, 1)");
  fails("Upsample()", "expected one of the arguments size and scale_factor");
  fails("Upsample(scale_factor=0)", "argument scale_factor: expected a number > 0");
  fails("Upsample(2, mode='area')",
        "argument mode: expected 'nearest', 'bilinear' or 'bicubic', found 'area'");
  fails("Embedding(4, 2, padding_idx=4)", "argument padding_idx: there is no such row");
  fails("Embedding(4, 2, sparse=True)", "argument sparse");
  fails("RMSNorm((2, 3))", "only one dimension is supported");
  fails("ConvTranspose2d(3, 4, 2, groups=2)", "groups do not divide the channels");
}

Extent2d extent(int64_t height, int64_t width) { return {height, width}; }

TEST(LayerText, PairsReachTheLayer) {
  const auto conv_of = [](const std::string& text) {
    return dynamic_cast<const Conv2d&>(*make_layer(text)).options();
  };
  const Conv2dOptions conv =
      conv_of("Conv2d(8, 5, kernel_size=(1, 3), stride=(2, 1), padding=(0, 2), dilation=(3, 4))");
  EXPECT_EQ(conv.kernel_size, extent(1, 3));
  EXPECT_EQ(conv.stride, extent(2, 1));
  EXPECT_EQ(conv.padding, extent(0, 2));
  EXPECT_EQ(conv.dilation, extent(3, 4));
  EXPECT_EQ(conv_of("Conv2d(1, 1, (3, 5), padding='same', dilation=(1, 2))").padding, extent(1, 4));
  EXPECT_EQ(conv_of("Conv2d(1, 1, kernel_size=(3, 5), stride=(1, 1), padding=same)").padding, extent(1, 2));
  EXPECT_EQ(conv_of("Conv2d(1, 1, 3, padding='valid', padding_mode='zeros')").padding, 0);
  const auto pool = make_layer("MaxPool2d((3, 2), padding=(1, 0), dilation=(1, 2), ceil_mode=True)");
  const MaxPool2dOptions& of_pool = dynamic_cast<const MaxPool2d&>(*pool).options();
  EXPECT_EQ(of_pool.kernel_size, extent(3, 2));
  EXPECT_EQ(of_pool.stride, extent(3, 2));
  EXPECT_EQ(of_pool.padding, extent(1, 0));
  EXPECT_EQ(of_pool.dilation, extent(1, 2));
  EXPECT_TRUE(of_pool.ceil_mode);
}

TEST(LayerText, NormsOfEveryForm) {
  EXPECT_EQ(shapes_of("LayerNorm((4, 5), eps=1e-05, elementwise_affine=True, bias=True)"),
            (std::vector<Shape>{{4, 5}, {4, 5}}));
  EXPECT_EQ(shapes_of("LayerNorm((4, 5), bias=False)"), (std::vector<Shape>{{4, 5}}));
  EXPECT_EQ(shapes_of("GroupNorm(2, 8, eps=1e-05, affine=True)"), (std::vector<Shape>{{8}, {8}}));
  EXPECT_EQ(shapes_of("Conv1d(4, 6, kernel_size=(3,), stride=(1,), groups=2)"),
            (std::vector<Shape>{{6, 2, 3}, {6}}));
  EXPECT_EQ(shapes_of("Conv3d(4, 6, kernel_size=(1, 2, 3), stride=(1, 1, 2), bias=False)"),
            (std::vector<Shape>{{6, 4, 1, 2, 3}}));
  EXPECT_STREQ(make_layer("BatchNorm3d(3)")->kind(), "BatchNorm3d");
  for (const char* text : {"LayerNorm(4, elementwise_affine=False)", "GroupNorm(2, 8, affine=False)",
                           "BatchNorm1d(3, affine=False)"})
    EXPECT_TRUE(shapes_of(text).empty()) << text;
  EXPECT_EQ(dynamic_cast<const GroupNorm&>(*make_layer("GroupNorm(2, 8, eps=0.5)")).options().eps, 0.5);
}

TEST(LayerText, IsTakenAsOneWritesIt) {
  EXPECT_EQ(shapes_of(" Linear( 64 , 32 ) "), (std::vector<Shape>{{32, 64}, {32}}));
  EXPECT_EQ(shapes_of("Linear(64, 32, False)"), (std::vector<Shape>{{32, 64}}));
  EXPECT_EQ(shapes_of("Conv2d(1, 8, 3)"), (std::vector<Shape>{{8, 1, 3, 3}, {8}}));
  EXPECT_STREQ(make_layer("ReLU")->kind(), "ReLU");
}

TEST(LayerText, UnsupportedLayersAreNamed) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"Lnear(3, 4)", "there is no layer 'Lnear'; expected one of "},
      {"Linear(3)", "Linear: argument out_features is missing"},
      {"Linear(3, 4, biass=True)",
       "Linear: there is no argument biass; expected one of in_features, out_features, bias"},
      {"Linear(3, 4, bias=1)", "Linear: argument bias: expected True or False, found 1"},
      {"Linear(3, 4, True, 5)", "Linear: more than 3 arguments"},
      {"Linear(3, in_features=3)", "Linear: argument in_features is given twice"},
      {"Linear(0, 4)", "Linear: argument in_features: expected an integer from 1 to 1000000000, found 0"},
      {"Linear(3, 4", "Linear: a ')' is missing"},
      {"Linear(3, 4))", "an extra ')'"},
      {"Conv2d(1, 8, 3, padding_mode='reflect')", "Conv2d: argument padding_mode: only 'zeros' is supported"},
      {"Conv2d(1, 8, 4, padding='same')",
       "Conv2d: argument padding: 'same' needs stride 1 and an odd kernel"},
      {"Conv2d(1, 8, 3, 2, padding='same')", "Conv2d: argument padding: 'same' needs stride 1 and an odd ke"},
      {"Conv2d(1, 8, 3, stride=(1, 0))", "Conv2d: argument stride: expected an integer from 1 to "},
      {"Conv1d(1, 8, kernel_size=(3, 3))", "Conv1d: argument kernel_size: expected 1 of them in parentheses"},
      {"BatchNorm2d(8, track_running_stats=False)", "argument track_running_stats: only True is supported"},
      {"GroupNorm(3, 8)", "GroupNorm: num_groups does not divide num_channels"},
      {"Conv2d(3, 8, 3, groups=2)", "Conv2d: groups do not divide the channels"},
      {"BatchNorm2d(8, momentum=1.2)", "BatchNorm2d: argument momentum: expected a number in [0, 1]"},
      {"BatchNorm2d(8, eps=0)", "BatchNorm2d: argument eps: expected a number in (0, 1)"},
      {"Conv2d(1, 8, kernel_size=(3, 3, 3))",
       "Conv2d: argument kernel_size: expected 2 of them in parentheses"},
      {"Linear((3, 3), 4)", "Linear: argument in_features: expected an integer, found (3, 3)"},
      {"LayerNorm(())", "LayerNorm: argument normalized_shape: expected at least one integer, found ()"},
      {"LayerNorm((8, 0))", "LayerNorm: argument normalized_shape: expected an integer from 1 to "},
      {"LayerNorm(8, eps=nan)", "LayerNorm: argument eps: expected a number in (0, 1)"},
      {"Linear(out_features=3, 4)", "Linear: argument 4 has no name but follows a named argument"},
      {"GELU(approximate='erf')", "GELU: argument approximate: expected 'none' or 'tanh', found 'erf'"},
      {"MaxPool2d(2, padding=2)", "more than half of kernel_size"},
      {"AvgPool2d(2, padding=2)", "more than half of kernel_size"},
      {"AvgPool2d(2, divisor_override=3)", "AvgPool2d: argument divisor_override: only None is supported"},
      {"MaxPool2d((2, 4), padding=(1, 3))", "more than half of kernel_size"},
      {"AvgPool2d(2, ceil_mode=1)", "AvgPool2d: argument ceil_mode: expected True or False, found 1"},
      {"Sigmoid(1)", "Sigmoid: more than 0 arguments"},
      {"Dropout(1.0)", "expected a number in [0, 1)"},
      {"", "there is no layer ''"}};
  for (const auto& [text, message] : wrong)
    EXPECT_THAT(([text = text] { make_layer(text); }), ThrowsMessage<UserError>(HasSubstr(message))) << text;
}

TEST(LayerText, AvgPool2dTakesTheMeanOfEachWindow) {
  const at::Tensor image = at::arange(16, at::kFloat).reshape({1, 1, 4, 4});
  const auto means = [&](const char* text) { return make_layer(text)->forward(image).tensor().flatten(); };
  EXPECT_TRUE(means("AvgPool2d(2)").equal(at::tensor({2.5F, 4.5F, 10.5F, 12.5F})));
  EXPECT_TRUE(means("AvgPool2d(2, 3, 1)").equal(at::tensor({0.0F, 1.25F, 5.0F, 12.5F})));
  EXPECT_TRUE(
      means("AvgPool2d(2, 3, 1, count_include_pad=False)").equal(at::tensor({0.0F, 2.5F, 10.0F, 12.5F})));
}

TEST(LayerText, ActivationsAreTorchsFormulas) {
  const at::Tensor x = at::linspace(-3.0, 3.0, 13).view({1, 13}), share = 1.0 / (1.0 + (-x).exp());
  const auto is = [&](const char* text, const at::Tensor& want) {
    return at::allclose(make_layer(text)->forward(x).tensor(), want, 1e-5, 1e-6);
  };
  EXPECT_TRUE(is("Identity()", x));
  EXPECT_TRUE(is("Sigmoid()", share));
  EXPECT_TRUE(is("SiLU()", x * share));
  EXPECT_TRUE(is("LeakyReLU()", at::where(x > 0, x, x * 0.01)));
  EXPECT_TRUE(is("LeakyReLU(0.25, inplace=True)", at::where(x > 0, x, x * 0.25)));
}

// Over the samples, and over all places of what has some.
TEST(LayerText, BatchNorm1dNormalisesChannels) {
  for (const at::Tensor& x : {at::randn({6, 3}), at::randn({4, 3, 5})}) {
    const auto norm = make_layer("BatchNorm1d(3, eps=0.5)");
    EXPECT_STREQ(norm->kind(), "BatchNorm1d");
    materialise(*norm, 1);
    const ForwardContext training{.training = true};
    set_context(*norm, &training);
    const at::Tensor rows = x.movedim(1, -1).reshape({-1, 3});
    const at::Tensor want = (rows - rows.mean(0)) / (rows.var(0, /*unbiased=*/false) + 0.5).sqrt();
    const at::Tensor got = norm->forward(x).tensor().movedim(1, -1).reshape({-1, 3});
    EXPECT_TRUE(at::allclose(got, want, 1e-4, 1e-5));
  }
}

TEST(LayerText, MaxPool2dTakesTheLargestOfEachWindow) {
  const at::Tensor image = at::arange(16, at::kFloat).reshape({1, 1, 4, 4});
  const auto largest = [&](const char* text) { return make_layer(text)->forward(image).tensor().flatten(); };
  EXPECT_TRUE(largest("MaxPool2d(2)").equal(at::tensor({5.0F, 7.0F, 13.0F, 15.0F})));
  EXPECT_TRUE(
      largest("MaxPool2d(2, stride=1)").equal(at::tensor({5, 6, 7, 9, 10, 11, 13, 14, 15}).to(at::kFloat)));
  EXPECT_TRUE(
      largest("MaxPool2d(2, padding=1)").equal(at::tensor({0, 2, 3, 8, 10, 11, 12, 14, 15}).to(at::kFloat)));
}

Setting sequential(const std::vector<std::string>& layers) {
  Setting::Array list;
  for (const auto& one : layers) list.push_back(section_with({{"x", one}}).at("x"));
  return section_with({{"kind", std::string("sequential")}, {"layers", std::move(list)}});
}

const SampleSpec kDigits{.shapes = {{"input", {1, 8, 8}}, {"target", {}}}, .classes = 10};

TEST(SequentialNet, IsNamedAsAnNnSequential) {
  const auto net = make_model(sequential({"Flatten", "Linear(64, 32)", "ReLU", "Linear(32, 10)"}), kDigits);
  std::vector<std::string> names;
  for (const auto& one : parameters(*net)) names.push_back(one.name);
  EXPECT_THAT(names, testing::ElementsAre("1.weight", "1.bias", "3.weight", "3.bias"));
}

TEST(SequentialNet, ALayerThatDoesNotFitIsNamed) {
  EXPECT_THAT(
      [] {
        make_model(sequential({"Flatten", "Linear(65, 10)"}), kDigits);
      },
      ThrowsMessage<UserError>(
          AllOf(HasSubstr("layers = "), HasSubstr("layer 1: Linear does not accept [64] "))));
  EXPECT_THAT(
      [] {
        make_model(sequential({"Flatten", "Linear(64"}), kDigits);
      },
      ThrowsMessage<UserError>(HasSubstr("layer 1: Linear: a ')' is missing")));
  EXPECT_THAT(
      [] {
        make_model(sequential({"Flatten", "Linear(64, 9)"}), kDigits);
      },
      ThrowsMessage<UserError>(HasSubstr("they end in 9 scores a sample; the data has targets up to 9")));
  const SampleSpec flat{.shapes = {{"input", {8, 8}}, {"target", {}}}, .classes = 10};
  EXPECT_THAT(
      [&] {
        make_model(sequential({"Conv2d(1, 8, 3)", "Flatten", "Linear(36, 10)"}), flat);
      },
      ThrowsMessage<UserError>(HasSubstr("layer 0: Conv2d does not accept [8, 8] a sample: expected [ch")));
  EXPECT_THAT([] { make_model(sequential({"Flatten"}), kDigits); },
              ThrowsMessage<UserError>(HasSubstr("there is nothing to train")));
  EXPECT_THAT([] { make_model(sequential({}), kDigits); },
              ThrowsMessage<UserError>(HasSubstr("there is nothing to train")));
  EXPECT_THAT(
      [] {
        make_model(sequential({"Flatten", "Linear(64, 1000000000)", "Linear(1000000000, 1000000000)"}),
                   kDigits);
      },
      ThrowsMessage<RunError>(HasSubstr("layers = ")));
  EXPECT_THAT([] { make_model(sequential({"Conv2d(1, 8, 3)"}), kDigits); },
              ThrowsMessage<UserError>(HasSubstr("they end in [8, 6, 6] a sample")));
}

}  // namespace
}  // namespace tutti
