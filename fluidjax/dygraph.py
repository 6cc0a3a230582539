"""fluid.dygraph: dynamic mode is not supported. The module can be imported and its classes derived
from, but any call raises an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base.stand_in import fill

# The modules below ("": this one) with the public names of 1.8.5 and the releases around it.
NAMES = {
    "": (
        "AmpScaler BCELoss BackwardStrategy BatchNorm BilinearTensorProduct Conv2D Conv2DTranspose"
        " Conv3D Conv3DTranspose CosineDecay DataParallel Dropout Embedding ExponentialDecay FC"
        " Flatten GRUUnit GroupNorm InstanceNorm InverseTimeDecay L1Loss LambdaDecay Layer"
        " LayerList LayerNorm Linear LinearLrWarmup MSELoss MultiStepDecay NCE NLLLoss"
        " NaturalExpDecay NoamDecay PRelu ParallelEnv ParameterList PiecewiseDecay PolynomialDecay"
        " Pool2D ProgramTranslator ReduceLROnPlateau Sequential SpectralNorm StaticModelRunner"
        " StepDecay TracedLayer Tracer TreeConv amp_guard declarative disable_dygraph"
        " disable_imperative dygraph_to_static_func enable_dygraph enable_imperative enabled grad"
        " guard load_dygraph no_grad prepare_context save_dygraph start_gperf_profiler"
        " stop_gperf_profiler to_variable"
    ),
    "amp": "AmpScaler amp_guard auto_cast",
    "backward_strategy": "BackwardStrategy",
    "base": (
        "disable_dygraph disable_imperative enable_dygraph enable_imperative enabled grad guard"
        " no_grad param_guard program_desc_tracing_guard to_variable"
    ),
    "checkpoint": "load_dygraph load_persistables save_dygraph save_persistables",
    "container": "LayerList ParameterList Sequential",
    "dygraph_to_static": (
        "AstNodeWrapper DygraphToStaticAst LoopTransformer NameVisitor NodeVarType"
        " ProgramTranslator StaticAnalysisVisitor convert_call convert_function_with_cache"
        " convert_to_static create_static_variable_gast_node data_layer_not_check"
        " to_static_variable_gast_node"
    ),
    "dygraph_to_static.ast_transformer": "DygraphToStaticAst convert_to_static",
    "dygraph_to_static.basic_api_transformer": "BasicApiTransformer dygraph_class_to_static_api",
    "dygraph_to_static.break_continue_transformer": "BreakContinueTransformer",
    "dygraph_to_static.call_transformer": "CallTransformer",
    "dygraph_to_static.convert_call_func": "convert_call",
    "dygraph_to_static.ifelse_transformer": (
        "IfConditionVisitor IfElseTransformer NameVisitor NodeTestTransformer create_cond_node"
        " get_name_ids parse_cond_args parse_cond_return transform_if_else"
    ),
    "dygraph_to_static.list_transformer": "ListTransformer",
    "dygraph_to_static.loop_transformer": "LoopTransformer NameVisitor",
    "dygraph_to_static.partial_program": "PartialProgramLayer partial_program_from valid_vars",
    "dygraph_to_static.print_transformer": "PrintTransformer",
    "dygraph_to_static.program_translator": "ProgramTranslator convert_function_with_cache",
    "dygraph_to_static.static_analysis": "AstNodeWrapper NodeVarType StaticAnalysisVisitor",
    "dygraph_to_static.tensor_shape_transformer": "TensorShapeTransformer",
    "dygraph_to_static.utils": (
        "IsControlFlowVisitor RenameTransformer ast_to_func ast_to_source_code compare_with_none"
        " create_api_shape_node create_assign_node create_funcDef_node dygraph_class_to_static_api"
        " generate_name_node get_attribute_full_name get_constant_variable_node index_in_list"
        " is_api_in_module is_candidate_node is_control_flow_to_transform is_dygraph_api"
        " is_numpy_api is_paddle_api is_to_variable recover_globals_attribute to_assign_node"
        " to_static_api to_static_ast update_args_of_func"
    ),
    "dygraph_to_static.variable_trans_func": (
        "create_static_variable_gast_node data_layer_not_check to_static_variable_gast_node"
    ),
    "io": "TranslatedLayer",
    "jit": "TracedLayer create_program_from_desc declarative dygraph_to_static_func extract_vars",
    "layer_object_helper": "LayerObjectHelper",
    "layers": "HookRemoveHelper Layer",
    "learning_rate_scheduler": (
        "CosineDecay ExponentialDecay InverseTimeDecay LambdaDecay LearningRateDecay LinearLrWarmup"
        " MultiStepDecay NaturalExpDecay NoamDecay PiecewiseDecay PolynomialDecay ReduceLROnPlateau"
        " StepDecay"
    ),
    "math_op_patch": "monkey_patch_math_varbase",
    "nn": (
        "BCELoss BatchNorm BilinearTensorProduct Conv2D Conv2DTranspose Conv3D Conv3DTranspose"
        " Dropout Embedding FC Flatten GRUUnit GroupNorm InstanceNorm L1Loss LayerNorm Linear"
        " MSELoss NCE NLLLoss PRelu Pool2D RowConv SequenceConv SpectralNorm TreeConv"
    ),
    "parallel": "DataParallel Env ParallelEnv prepare_context",
    "parallel_helper": "",
    "profiler": "start_gperf_profiler stop_gperf_profiler",
    "static_runner": "StaticModelRunner",
    "tracer": "Tracer",
    "varbase_patch_methods": "monkey_patch_math_varbase monkey_patch_varbase",
}


def enabled() -> bool:
    """False: there is no dynamic mode."""
    return False


def disable_dygraph() -> None:
    """Does nothing, because all programs are static."""


disable_imperative = disable_dygraph

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


fill(
    __name__,
    NAMES,
    "dynamic mode is not supported; build static programs",
    decorators=("no_grad", "declarative", "dygraph_to_static_func"),
    there={
        "enabled": enabled,
        "disable_dygraph": disable_dygraph,
        "disable_imperative": disable_imperative,
    },
)
