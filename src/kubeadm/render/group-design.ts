import { AppError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { renderTemplate, type Templates } from '../../codec/render-template.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import type { DesiredFile } from '../../host/plan/diff-file.ts';
import { parseUnitFile, type UnitDirective } from '../../host/systemd/unit-file.ts';
import { FLAGS_ENV, INSTANCE_CONFIG, KUBELET_CONFIG_FILE, KUBELET_UNIT_FILE } from '../../kube/well-known.ts';
import { readKubeletConfiguration } from '../../kubelet/documents/decode.ts';
import { readFlagsEnv } from '../../kubelet/flags/flags-env.ts';
import { originTexts } from '../../kubelet/layers/layers.ts';
import { parseSetting } from '../../kubelet/layers/setting.ts';
import { checkNodeFields } from '../../kubelet/validate/check-node-fields.ts';
import { designConfigDropIns, type NodeOverlay } from './config-drop-ins.ts';
import { layerNodeConfig, type NodeConfigInput } from './node-config.ts';
import { designUnitFiles, kubeletConfigFile, rootFile, type UnitFact, type UnitFilesDesign, type UnitFilesInput } from './unit-files.ts';

/**
 * The inputs that the hosts of a group have in common: all inputs of their files except node names, addresses
 * and flags.
 */
export interface GroupInput extends Omit<NodeConfigInput, 'overlays' | 'settings'> {
  readonly templates: Templates;
  /** No kubelet is installed: the minor is the cluster's. */
  readonly assumed: boolean;
  /** Partial KubeletConfigurations for these nodes. */
  readonly overlays: readonly NodeOverlay[];
  /** `--set`, as given. */
  readonly settings: readonly string[];
  readonly kubeletPath: string;
  /** The unit files on the hosts, by path. */
  readonly unitFiles: readonly (readonly [path: string, file: UnitFact | null])[];
  readonly unit: UnitFilesInput['unit'];
  readonly packageFamily: UnitFilesInput['packageFamily'];
  /** The layers of the nodes are drop-in files of `--config-dir`. Absent: they are merged into config.yaml. */
  readonly configDir?: boolean;
}

/** The files and results that the hosts of a group share. */
export type GroupDesign = ReturnType<typeof designGroup>;

/**
 * Layers, validates and renders the files of a group of hosts.
 * @throws AppError with exit code 2: wrong fields in overlays, settings or patches; layers that are no drop-in files;
 * RENDER_CHECK_FAILED
 */
export function designGroup(input: GroupInput) {
  const { templates, catalogue, minor, criSocket, criSocketSource } = input;
  const overlays = input.overlays.map((document) => readKubeletConfiguration(document, { minor, catalogue }));
  const layers = { ...input, overlays, settings: input.settings.map((setting) => parseSetting(setting, minor, catalogue)) };
  const { layered, warnings } = layerNodeConfig(layers);
  const yamlOf = (config: JsonObject): string => encodeYaml(config, catalogue.configurationType(minor));
  const configFile = (config: JsonObject): DesiredFile => kubeletConfigFile(KUBELET_CONFIG_FILE, { config, text: yamlOf(config) });
  const configDropIns = input.configDir === true ? designConfigDropIns({ ...layers, named: input.overlays, layered, templates }) : null;
  const instanceConfig = input.instanceConfig
    ? rootFile(INSTANCE_CONFIG, String(renderTemplate(templates, INSTANCE_CONFIG, { criSocket })))
    : null;
  return {
    layered,
    /** All layers in one document. */
    mergedYaml: yamlOf(layered.config),
    configYaml: configFile((configDropIns?.base ?? layered).config),
    /** Null: all layers are in config.yaml. */
    configDropIns: configDropIns?.files ?? null,
    /** Null if the socket is set by a flag. */
    instanceConfig,
    unit: designUnits(input),
    /** Source of each value, by path on the host and field. */
    origins: {
      [KUBELET_CONFIG_FILE]: originTexts(configDropIns?.base ?? layered),
      ...configDropIns?.origins,
      ...(instanceConfig === null ? {} : { [INSTANCE_CONFIG]: { containerRuntimeEndpoint: criSocketSource } }),
    } as Readonly<Record<string, Readonly<Record<string, string>>>>,
    /** Warnings of layering, and of the validation. */
    layerWarnings: warnings,
    fieldWarnings: checkNodeFields(layered, input),
  };
}

/** Decides which unit files of the kubelet to write. */
export function designUnits({
  templates,
  kubeletPath,
  unitFiles,
  unit,
  packageFamily,
}: Pick<GroupInput, 'templates' | 'kubeletPath' | 'unitFiles' | 'unit' | 'packageFamily'>): UnitFilesDesign {
  const renderUnit = (): string => {
    const text = String(renderTemplate(templates, KUBELET_UNIT_FILE, { kubeletPath }));
    checkUnitFile(KUBELET_UNIT_FILE, text, [
      { name: 'ExecStart', value: kubeletPath },
      { name: 'Restart', value: 'always' },
    ]);
    return text;
  };
  const renderDropIn = (extraArgsFile: string): string => {
    const path = '/etc/systemd/system/kubelet.service.d/10-kubeadm.conf';
    const command = `${kubeletPath} $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS`;
    const text = String(renderTemplate(templates, path, { kubeletPath, extraArgsFile }));
    checkUnitFile(path, text, [
      { name: 'EnvironmentFile', value: `-${FLAGS_ENV}` },
      { name: 'EnvironmentFile', value: `-${extraArgsFile}` },
      { name: 'ExecStart', value: '' },
      { name: 'ExecStart', value: command },
    ]);
    return text;
  };
  return designUnitFiles({ found: new Map(unitFiles), unit, packageFamily, renderDropIn, renderUnit });
}

/**
 * Parses kubeadm-flags.env as systemd does: each flag must become one word.
 * @throws AppError RENDER_CHECK_FAILED: the file would have another meaning
 */
export function checkFlagsEnv(text: string, flagNames: readonly string[]): void {
  const words = readFlagsEnv(text);
  if (words.length !== flagNames.length || !flagNames.every((name, i) => words[i]?.startsWith(`--${name}=`)))
    throw checkFailed(FLAGS_ENV, `parsed as ${words.length} words`);
}

/** Parses a unit file: the required directives must exist in this order. */
function checkUnitFile(path: string, text: string, desired: readonly Pick<UnitDirective, 'name' | 'value'>[]): void {
  const found = parseUnitFile(text).filter((directive) => desired.some((one) => one.name === directive.name));
  const same = found.length === desired.length && desired.every((one, i) => found[i]?.name === one.name && found[i]?.value === one.value);
  if (!same) throw checkFailed(path, 'the parsed directives differ');
}

function checkFailed(path: string, why: string): AppError {
  return new AppError({
    code: 'RENDER_CHECK_FAILED',
    message: `internal error: ${path} was rendered incorrectly: ${why}`,
    hint: 'Nothing was written. Please report this bug',
  });
}
