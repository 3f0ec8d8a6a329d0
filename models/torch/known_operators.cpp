#include "models/torch/known_operators.h"

#include <ATen/core/jit_type.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <unordered_set>

#include "runtime/error.h"

namespace tutti {
namespace {

// In libtorch's namespace "aten", with which `name_` belongs to `name`. Reviewed name by name for libtorch
// 2.9 to 2.11. Not here: files (from_file, save), another place of a tensor's numbers (set_, resize_,
// _reshape_alias, as_strided_), what trusts its sizes or indices (_unsafe_*, *_backward, native norms,
// sparse and quantized tensors, lu_solve, fractional pools), the generator's seed, backward, other devices'
// libraries, and what makes a text of any length, or counts to any number, of constants alone: libtorch calls
// it as it reads a file (ljust, replace, factorial).
constexpr const char* kAten =
    // Making, copying and asking tensors.
    "_cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short "
    "_dim_arange _get_tracing_state _infer_size _local_scalar_dense _reshape_from_tensor _shape_as_tensor "
    "_to_copy alias allclose arange as_tensor bartlett_window blackman_window block_diag can_cast "
    "cartesian_prod clone combinations complex contiguous copy cpu cuda data detach device dim "
    "element_size empty empty_like empty_permuted empty_strided equal eye full full_like "
    "get_autocast_dtype get_device hamming_window hann_window has_torch_function is_autocast_cpu_enabled "
    "is_autocast_enabled is_coalesced is_complex is_conj is_contiguous is_distributed is_floating_point "
    "is_grad_enabled is_inference is_leaf is_neg is_non_overlapping_and_dense is_nonzero is_same_size "
    "is_scripting is_signed item kaiser_window lift lift_fresh lift_fresh_copy linspace logspace "
    "new_empty new_empty_strided new_full new_ones new_zeros numel one_hot ones ones_like polar range "
    "resolve_conj resolve_neg result_type scalar_tensor set_grad_enabled size storage_offset stride "
    "sym_is_contiguous sym_numel sym_size sym_storage_offset sym_stride tensor to tril_indices "
    "triu_indices type_as vander zeros zeros_like "
    // Views and places.
    "_pad_circular _pad_enum adjoint argwhere as_strided as_strided_scatter atleast_1d atleast_2d "
    "atleast_3d broadcast_tensors broadcast_to cat channel_shuffle chunk col2im column_stack concat "
    "concatenate constant_pad_nd diag diag_embed diagflat diagonal diagonal_scatter dsplit dstack expand "
    "expand_as fill fill_diagonal_ flatten flip fliplr flipud gather hsplit hstack im2col imag index "
    "index_add index_copy index_fill index_put index_reduce index_select mH mT masked_fill masked_scatter "
    "masked_select matrix_H meshgrid moveaxis movedim narrow nonzero nonzero_numpy nonzero_static numpy_T "
    "pad pad_sequence permute pixel_shuffle pixel_unshuffle put ravel real reflection_pad1d "
    "reflection_pad2d reflection_pad3d repeat repeat_interleave replication_pad1d replication_pad2d "
    "replication_pad3d reshape reshape_as roll rot90 row_stack scatter scatter_add scatter_reduce select "
    "select_scatter slice slice_scatter split split_with_sizes squeeze stack sum_to_size swapaxes "
    "swapdims t take take_along_dim tensor_split tile trace transpose tril triu unbind unflatten unfold "
    "unsqueeze view view_as view_as_complex view_as_real vsplit vstack where zero "
    // Numbers one by one.
    "abs absolute acos acosh add addcdiv addcmul angle arccos arccosh arcsin arcsinh arctan arctan2 "
    "arctanh asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or "
    "bitwise_right_shift bitwise_xor ceil celu chalf clamp clamp_max clamp_min clip conj conj_physical "
    "copysign cos cosh deg2rad digamma div divide elu eq erf erfc erfinv exp exp2 expm1 "
    "fake_quantize_per_channel_affine fake_quantize_per_tensor_affine fix float_power floor floor_divide "
    "fmax fmin fmod frac frexp gcd ge gelu glu greater greater_equal gt hardshrink hardsigmoid hardswish "
    "hardtanh heaviside hypot i0 igamma igammac isclose isfinite isinf isnan isneginf isposinf isreal lcm "
    "ldexp le leaky_relu lerp less less_equal lgamma log log10 log1p log2 log_sigmoid logaddexp "
    "logaddexp2 logical_and logical_not logical_or logical_xor logit lt maximum minimum mish mul multiply "
    "mvlgamma nan_to_num ne neg negative nextafter not_equal polygamma positive pow prelu rad2deg "
    "reciprocal relu relu6 remainder round rrelu rsqrt rsub selu sgn sigmoid sign signbit silu sin sinc "
    "sinh softplus softshrink special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 "
    "special_bessel_y1 special_chebyshev_polynomial_t special_chebyshev_polynomial_u "
    "special_chebyshev_polynomial_v special_chebyshev_polynomial_w special_digamma special_entr "
    "special_erf special_erfc special_erfcx special_erfinv special_exp2 special_expit special_expm1 "
    "special_gammainc special_gammaincc special_gammaln special_hermite_polynomial_h "
    "special_hermite_polynomial_he special_i0 special_i0e special_i1 special_i1e "
    "special_laguerre_polynomial_l special_legendre_polynomial_p special_log1p special_log_ndtr "
    "special_log_softmax special_logit special_logsumexp special_modified_bessel_i0 "
    "special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 "
    "special_multigammaln special_ndtr special_ndtri special_polygamma special_psi special_round "
    "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 "
    "special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u "
    "special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w special_sinc "
    "special_softmax special_spherical_bessel_j0 special_xlog1py special_xlogy special_zeta sqrt square "
    "sub subtract tan tanh threshold true_divide trunc xlogy "
    // Over many numbers.
    "_is_all_true _is_any_true _log_softmax _safe_softmax _softmax _unique _unique2 all amax amin aminmax "
    "any argmax argmin argsort bincount bucketize cdist corrcoef cosine_similarity count_nonzero cov "
    "cummax cummin cumprod cumsum cumulative_trapezoid diff dist frobenius_norm gradient histc histogram "
    "histogramdd isin kthvalue log_softmax logcumsumexp logsumexp max mean median min mode msort nanmean "
    "nanmedian nanquantile nansum norm norm_except_dim nuclear_norm pairwise_distance pdist prod quantile "
    "renorm searchsorted softmax sort std std_mean sum topk trapezoid trapz unique_consecutive unique_dim "
    "unique_dim_consecutive var var_mean "
    // Matrices, and Fourier's transform.
    "_linalg_det _linalg_eigh _linalg_slogdet _linalg_solve_ex _linalg_svd addbmm addmm addmv addr "
    "baddbmm bilinear bmm chain_matmul cholesky cholesky_inverse cholesky_solve cross det dot einsum "
    "fft_fft fft_fft2 fft_fftfreq fft_fftn fft_fftshift fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 "
    "fft_ifftn fft_ifftshift fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft "
    "fft_rfft2 fft_rfftfreq fft_rfftn geqrf ger inner inverse istft kron linalg_cholesky "
    "linalg_cholesky_ex linalg_cond linalg_cross linalg_det linalg_diagonal linalg_eig linalg_eigh "
    "linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex linalg_ldl_factor "
    "linalg_ldl_factor_ex linalg_lstsq linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_matmul "
    "linalg_matrix_exp linalg_matrix_norm linalg_matrix_power linalg_matrix_rank linalg_multi_dot "
    "linalg_norm linalg_pinv linalg_qr linalg_slogdet linalg_solve linalg_solve_ex "
    "linalg_solve_triangular linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve linalg_vander "
    "linalg_vecdot linalg_vector_norm linear logdet lu_unpack matmul matrix_exp matrix_power mm mv orgqr "
    "ormqr outer pinverse qr slogdet stft svd tensordot triangular_solve vdot "
    // Layers and losses.
    "__interpolate __upsample __upsample_bilinear __upsample_nearest _adaptive_avg_pool2d "
    "_adaptive_avg_pool3d _convolution _convolution_mode _native_multi_head_attention "
    "_nested_tensor_from_mask _nested_tensor_from_mask_left_aligned _pack_padded_sequence "
    "_pad_packed_sequence _transformer_encoder_layer_fwd _upsample_bicubic2d_aa _upsample_bilinear2d_aa "
    "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d _weight_norm "
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
    "adaptive_max_pool3d affine_grid_generator avg_pool1d avg_pool2d avg_pool3d batch_norm "
    "binary_cross_entropy binary_cross_entropy_with_logits conv1d conv2d conv3d conv_tbc conv_transpose1d "
    "conv_transpose2d conv_transpose3d convolution cosine_embedding_loss cross_entropy_loss ctc_loss "
    "embedding embedding_bag embedding_renorm_ grad grid_sampler grid_sampler_2d grid_sampler_3d "
    "group_norm gru gru_cell hinge_embedding_loss huber_loss instance_norm kl_div l1_loss layer_norm lstm "
    "lstm_cell margin_ranking_loss max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices "
    "max_pool3d max_pool3d_with_indices max_unpool2d max_unpool3d mse_loss multi_margin_loss "
    "multilabel_margin_loss native_layer_norm nll_loss nll_loss2d nll_loss_nd poisson_nll_loss rms_norm "
    "rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell scaled_dot_product_attention smooth_l1_loss "
    "soft_margin_loss to_padded_tensor triplet_margin_loss upsample_bicubic2d upsample_bilinear2d "
    "upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d "
    // Random numbers of the generator, whose seed stays.
    "_sample_dirichlet _standard_gamma alpha_dropout bernoulli binomial cauchy dropout exponential "
    "feature_alpha_dropout feature_dropout geometric log_normal multinomial normal poisson rand rand_like "
    "randint randint_like randn randn_like random randperm uniform "
    // Python's numbers, texts, lists and dicts.
    "Bool Complex ComplexImplicit Delete Float FloatImplicit Int IntImplicit ScalarImplicit Size __and__ "
    "__contains__ __derive_index __getitem__ __iand__ __ilshift__ __ior__ __irshift__ __is__ __isnot__ "
    "__ixor__ __lshift__ __not__ __or__ __range_length __round_to_zero_floordiv __rshift__ __xor__ "
    "_list_to_tensor _set_item _tensor_to_list _unwrap_optional append bin capitalize chr clear "
    "count degrees dict divmod endswith extend fabs find floordiv format gamma get "
    "hash hex insert isalnum isalpha isdecimal isdigit isidentifier islower isnumeric isprintable isspace "
    "istitle isupper items join keys len list lower lstrip mathremainder modf oct ord partition "
    "percentFormat pop popitem radians remove reverse rfind rindex rpartition rsplit rstrip "
    "setdefault sorted splitlines startswith str strip swapcase title update upper values warn ";

// In the namespace "prim": of the language of TorchScript.
constexpr const char* kPrim =
    "EnumName EnumValue NumToTensor Print RaiseException StringIndex TupleIndex TupleUnpack Uninitialized "
    "abs data device dtype grad index is_cpu is_cuda is_ipu is_maia is_meta is_mkldnn is_mps is_mtia "
    "is_nested is_quantized is_sparse is_sparse_csr is_vulkan is_xla is_xpu itemsize layout max min "
    "nbytes rangelist requires_grad tolist type unchecked_cast unchecked_unwrap_optional ";

std::unordered_set<std::string> all_names() {
  std::unordered_set<std::string> names;
  const auto add = [&](const std::string& space, const char* list) {
    std::istringstream words(list);
    for (std::string word; words >> word;) names.insert(space + word);
  };
  add("aten::", kAten);
  add("prim::", kPrim);
  return names;
}

bool is_dtype(int64_t number) {
  using enum c10::ScalarType;
  constexpr std::array kTypes{Byte,   Char,        Short,        Int,           Long, Half,    Float,
                              Double, ComplexHalf, ComplexFloat, ComplexDouble, Bool, BFloat16};
  return std::ranges::count(kTypes, number, [](auto type) { return static_cast<int64_t>(type); }) > 0;
}

// Null for a type of which values need no look.
bool (*check_of(const c10::Argument& argument))(int64_t) {
  if (argument.name() == "num_head" || argument.name() == "num_heads")
    return [](int64_t number) { return number > 0; };
  c10::TypePtr type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  switch (type->kind()) {
    case c10::TypeKind::ScalarTypeType:
      return is_dtype;
    case c10::TypeKind::LayoutType:
      return [](int64_t number) { return number == static_cast<int64_t>(c10::Layout::Strided); };
    case c10::TypeKind::MemoryFormatType:
      return [](int64_t number) {
        return number >= 0 && number < static_cast<int64_t>(c10::MemoryFormat::NumOptions);
      };
    default:
      return nullptr;
  }
}

}  // namespace

bool is_known_operator(const std::string& name) {
  static const std::unordered_set<std::string> known = all_names();
  if (known.contains(name)) return true;
  const bool in_place = name.ends_with('_') && !name.ends_with("__") && name != "aten::as_strided_";
  return in_place && known.contains(name.substr(0, name.size() - 1));
}

void refuse_operator(const std::string& place) {
  throw UserError(place +
                  " is refused: of libtorch's operators a program in a file may call those that compute "
                  "(docs/your_model.md), and this one is none of them");
}

void require_known(const c10::FunctionSchema& schema, const std::string& place) {
  if (!is_known_operator(schema.name())) refuse_operator(place);
}

CheckedArguments::CheckedArguments(const c10::FunctionSchema& schema)
    : has_out_(std::ranges::any_of(schema.arguments(), &c10::Argument::is_out)),
      rule_(argument_rule(schema.name())) {
  for (std::size_t i = 0; i < schema.arguments().size(); ++i)
    if (const Check check = check_of(schema.arguments()[i])) checked_.emplace_back(i, check);
}

std::string CheckedArguments::problem(const torch::jit::Stack& arguments) const {
  if (has_out_) return "it has an argument 'out', which a program in a file may not write";
  for (const auto& [index, check] : checked_) {
    if (index >= arguments.size() || !arguments[index].isInt()) continue;
    const int64_t number = arguments[index].toInt();
    if (!check(number))
      return "argument " + std::to_string(index + 1) + " is " + std::to_string(number) +
             ", which no such argument may be";
  }
  return rule_ ? rule_(arguments) : "";
}

}  // namespace tutti
