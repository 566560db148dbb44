import type { Arg } from '../../../base/arg.ts';
import { isAppError, type Problem } from '../../../base/errors.ts';
import { jsonEqual } from '../../../base/json.ts';
import type { Warning } from '../../../host/plan/change.ts';
import { FLAGS_ENV, KUBELET_CONFIG_FILE } from '../../../kube/well-known.ts';
import { type KubeletReading, runningInput, type SetupChange } from '../../../kubelet/effective/field-changes.ts';
import type { KubeletSetup } from '../../../kubelet/effective/kubelet-setup.ts';
import { isOwnConfigDropIn } from '../../../kubelet/facts/own-config-drop-ins.ts';
import { type LayeredConfig, leavesOf } from '../../../kubelet/layers/layers.ts';
import { describeHidden, findHiddenFields, type HiddenField } from '../../../kubelet/layers/overridden-fields.ts';
import { isIgnored } from '../../preflight/check.ts';
import type { NodeDesign } from '../../render/node-design.ts';

/** The preflight check, and the code of its problems. */
const FIELD_NOT_IN_FORCE = 'FieldNotInForce';

interface CheckedFields {
  readonly host: string;
  readonly design: NodeDesign;
  readonly setups: SetupChange;
  readonly reading: KubeletReading;
  /** The user declared the cluster's KubeletConfiguration in this run. */
  readonly clusterIsDeclared: boolean;
  /** `--ignore-preflight-errors` of the run and of the node. */
  readonly ignored: readonly string[];
  /** Flags of the host's own unit, which are not declared for the node. */
  readonly kept: readonly Arg[];
}

interface Verdict {
  readonly warnings: readonly Warning[];
  readonly refusals: readonly Problem[];
}

/**
 * Compares the configuration that the kubelet will read with the one that the plan writes. Another file of `--config`, and a
 * field that this run changes for this node but that a flag or drop-in file overrides, are refused: the change would have
 * no effect. A flag declared for the node may override the configuration of the cluster or of a group, as in kubeadm.
 */
export function checkHiddenFields({ host, design, setups, reading, clusterIsDeclared, ignored, kept }: CheckedFields): Verdict {
  const { before, after } = setups;
  const refuses = !isIgnored(FIELD_NOT_IN_FORCE, ignored);
  const elsewhere = otherConfigFile(after);
  if (elsewhere !== null) {
    const { message, hint } = elsewhere;
    return refuses
      ? { warnings: [], refusals: [refusal(host, message, hint)] }
      : { warnings: [{ code: FIELD_NOT_IN_FORCE, message }], refusals: [] };
  }
  const layers = layersOf(after, reading);
  if (layers === null) return { warnings: [], refusals: [] };
  const old = before === null ? null : layersOf(before, reading);
  const oldLeaves = old === null ? new Map() : leavesOf(old.written.config);
  const hidden = findHiddenFields(layers.written, layers.actual);
  const isKept = ({ by }: HiddenField): boolean => kept.some(({ name }) => name === by.flag?.name);
  const isOfNode = (field: HiddenField): boolean => isDeclaredFlag(field) && !isKept(field);
  const isSetNow = (field: HiddenField): boolean => {
    if (jsonEqual(oldLeaves.get(field.path), field.desired)) return false;
    const layer = design.layered.history.get(field.path)?.at(-1)?.origin.layer;
    if (layer === 'set') return true;
    if (layer === 'cluster') return clusterIsDeclared && !isOfNode(field);
    return (layer === 'node' || layer === 'patch') && !isOfNode(field);
  };
  const refused = refuses ? hidden.filter(isSetNow) : [];
  const warned = hidden.filter((field) => !refused.includes(field));
  const names = [...new Set(refused.map(({ path }) => path))];
  return {
    warnings: warned.map((field) => ({
      code: field.by.layer === 'flag' ? 'FLAG_SHADOWS_FIELD' : 'DROP_IN_SHADOWS_FIELD',
      field: field.path,
      message: describeHidden(field),
    })),
    refusals:
      refused.length === 0
        ? []
        : [
            refusal(
              host,
              `the change of ${names.join(', ')} would have no effect: ${refused.map(describeHidden).join('; ')}`,
              refused.some(isKept)
                ? 'Drop the flag of the host with --kubelet-extra-args NAME-, or remove the field'
                : 'Remove the flag or the field where it is set',
            ),
          ],
  };
}

/** A flag of kubeadm-flags.env is declared for the node. */
function isDeclaredFlag({ by }: HiddenField): boolean {
  return by.flag?.file === FLAGS_ENV;
}

/** Null: the kubelet reads the file that the plan writes. */
function otherConfigFile({ flags }: KubeletSetup): { readonly message: string; readonly hint: string } | null {
  const flag = flags.findLast(({ name }) => name === 'config');
  if (flag?.value === KUBELET_CONFIG_FILE) return null;
  return {
    message:
      flag === undefined
        ? `the kubelet would not read ${KUBELET_CONFIG_FILE}: its unit starts it without --config`
        : `the kubelet would not read ${KUBELET_CONFIG_FILE}: ${flag.source} sets --config=${flag.value}`,
    hint:
      flag === undefined
        ? 'Take over the host with kubeletadm join --ignore-preflight-errors=NodeExists, which writes a drop-in of the unit'
        : `Move the fields of ${flag.value} to an overlay (--overlay), then remove --config from ${flag.source}, or take over the host with kubeletadm join --ignore-preflight-errors=NodeExists, which replaces ExecStart of its unit`,
  };
}

function refusal(host: string, message: string, hint: string): Problem {
  const route = `${hint}. To continue anyway, use --ignore-preflight-errors=${FIELD_NOT_IN_FORCE}`;
  return { host, code: FIELD_NOT_IN_FORCE, message: `preflight: ${message}`, hint: route };
}

/** The configuration of the written files alone, and of all files and flags; null: no kubelet starts with them. */
function layersOf(
  setup: KubeletSetup,
  reading: KubeletReading,
): { readonly written: LayeredConfig; readonly actual: LayeredConfig } | null {
  const input = runningInput(setup, reading);
  const own = { ...input, flags: [], dropIns: input.dropIns.filter(({ path }) => isOwnConfigDropIn(path)) };
  try {
    return { written: reading.layersOf(own), actual: reading.layersOf(input) };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return null;
  }
}
