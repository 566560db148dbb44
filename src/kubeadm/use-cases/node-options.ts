import type { Arg } from '../../base/arg.ts';
import { AppError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import { goDurationMs, parseGoDuration } from '../../base/text/go-duration.ts';
import { parseSource, type SourceDocument } from '../../codec/source.ts';
import { type RunSettings, withDocument } from '../../host/run-settings.ts';
import { phaseSelection, skipsPreflight } from '../../host/run-workflow.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { isPatchFile, type PlannedPatch, planPatches } from '../../kubelet/layers/patch-files.ts';
import { type FieldSetting, requirePossibleSettings } from '../../kubelet/layers/setting.ts';
import type { LoadedConfig } from '../config/load.ts';
import { kubeletStart } from '../phases/kubelet-start.ts';
import type { TemplateSource } from '../ports.ts';
import { NodeGroups } from '../render/node-groups.ts';
import type { NodeOptions } from '../workflows/node/node-options.ts';

/** KubeletConfiguration fields set by options for a node. */
export interface FieldsRequest {
  /** The file of `--overlay`. */
  readonly overlay?: string | undefined;
  /** `field=value` of `--set`. */
  readonly settings: readonly string[];
  /** Fields with a dedicated option. */
  readonly declared: readonly FieldSetting[];
  /** `--kubelet-config-dir`; undefined: not given. */
  readonly configDir?: boolean | undefined;
}

/** Options for a node that have no field in kubeadm's configuration documents. */
export interface NodeRequest extends FieldsRequest {
  readonly extraArgs: readonly Arg[];
  /** Flags that are removed: of the documents, and of the host's own unit. */
  readonly droppedFlags: readonly string[];
}

/** Node options and the patches of the other targets. */
export interface ReadNodeOptions extends NodeOptions {
  /** Patches of all targets except the KubeletConfiguration. */
  readonly staticPodPatches: readonly PlannedPatch[];
}

/**
 * Reads the node options that init and join share, from files and flags.
 * @throws AppError with exit code 2 for an invalid file, and for a `--set` that no version of the kubelet accepts
 */
export async function readNodeOptions(
  services: TemplateSource & Pick<LocalFiles, 'input'>,
  {
    config,
    kind,
    node,
    run: ofCommandLine,
    staged,
    reporter,
  }: {
    readonly config: LoadedConfig;
    readonly kind: 'init' | 'join';
    readonly node: NodeRequest;
    readonly run: RunSettings;
    readonly staged: boolean;
    readonly reporter: Reporter;
  },
): Promise<ReadNodeOptions> {
  const { droppedFlags } = node;
  const document = kind === 'init' ? config.init : config.join;
  const registration = document?.nodeRegistration ?? {};
  const overlays = [
    ...(kind === 'join' && config.kubelet ? [config.kubelet] : []),
    ...(node.overlay === undefined ? [] : await readOverlay(services, node.overlay)),
  ];
  const directory = document?.patches?.directory;
  const patches = directory === undefined ? [] : await readPatches(services, directory, reporter);
  const run = withDocument(ofCommandLine, document);
  const catalogue = await loadCatalogue();
  requirePossibleSettings(node.settings, catalogue);
  return {
    templates: await services.templates(),
    catalogue,
    groups: new NodeGroups(),
    nodeRegistration: {
      ...registration,
      kubeletExtraArgs: [...(registration.kubeletExtraArgs ?? []).filter(({ name }) => !droppedFlags.includes(name)), ...node.extraArgs],
      ...(droppedFlags.length === 0 ? {} : { droppedFlags }),
    },
    overlays,
    declared: node.declared,
    settings: node.settings,
    patches: patches.filter(isForKubelet),
    configDir: node.configDir,
    staticPodPatches: patches.filter((patch) => !isForKubelet(patch)),
    skipPreflight: skipsPreflight(run),
    run: phaseSelection(run)(kubeletStart.name) ? run : { ...run, podLoss: 'ignore' },
    staged,
    kubeletHealthCheckMs: durationMs(document?.timeouts?.kubeletHealthCheck, 240_000),
  };
}

/** A configured duration in milliseconds; the default when the field is absent or invalid. */
export function durationMs(text: string | undefined, defaultMs: number): number {
  return text === undefined || parseGoDuration(text) === null ? defaultMs : goDurationMs(text);
}

export async function readOverlay({ input }: Pick<LocalFiles, 'input'>, file: string): Promise<readonly SourceDocument[]> {
  const { documents, problems } = parseSource(await input.readText(file), file);
  if (problems.length > 0) throw new AppError(problems, { exitCode: 2 });
  const found = documents.filter(({ root }) => root !== null);
  if (found.length === 1) return found;
  throw new AppError(
    {
      code: 'CONFIG_WRONG_KIND',
      message: `${file}: ${found.length === 0 ? 'the file contains no document' : 'the file contains several documents'}`,
      hint: 'Put exactly one KubeletConfiguration into an overlay file',
    },
    { exitCode: 2 },
  );
}

/** The patches of a directory. As in kubeadm, an invalid file is an error for every target. */
export async function readPatches(
  { input }: Pick<LocalFiles, 'input'>,
  directory: string,
  reporter: Reporter,
): Promise<readonly PlannedPatch[]> {
  const files = await input.readTree(directory, isPatchFile);
  const { patches, ignored, problems } = planPatches(files.map(({ path, text }) => ({ path: `${directory}/${path}`, text })));
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  for (const { code, message, hint, position } of problems)
    reporter.report({
      level: 'warning',
      code,
      message: `${position?.file ?? directory}: ${message}${hint === undefined ? '' : `. ${hint}`}`,
    });
  for (const { path, reason } of ignored)
    reporter.report({ level: 'warning', code: 'PATCH_IGNORED', message: `${path} is not used: ${reason}` });
  return patches;
}

export function isForKubelet({ target }: PlannedPatch): boolean {
  return target === 'kubeletconfiguration';
}
