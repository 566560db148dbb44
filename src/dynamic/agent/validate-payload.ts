import type { Problem } from '../../base/errors.ts';
import { isJsonObject } from '../../base/json.ts';
import { parseSource, type SourceDocument } from '../../codec/source.ts';
import { formatMinor, type KubeletReader, type Minor, nearestKnownMinor } from '../../kubelet/catalogue/catalogue.ts';
import { decodeKubeletConfiguration, syntaxOf } from '../../kubelet/documents/decode.ts';
import { OTHER_MINOR_CODE } from '../../kubelet/minor-option.ts';
import { FIRST_GATED_MINOR } from '../../kubelet/node-agent/native-flags.ts';
import { validateKubeletFile } from '../../kubelet/validate/kubelet-file.ts';
import { isStartupRule, type ValidationOptions, validateKubeletConfiguration } from '../../kubelet/validate/validate.ts';
import { asKubeletDocument, isOverlayDocument } from './overlay.ts';

/**
 * Validates a payload for the kubelets of some minors: the checks of `config validate`, and those that apply
 * only to a ConfigMap.
 * @param options.minors minors of the kubelets that will read the payload; a finding for several minors is reported once
 * @param options.native the kubelet itself reads the payload, and no agent rolls back a crash loop
 * @param options.lenient report unknown and duplicate fields as warnings, as the kubelet does
 * @returns errors and warnings, in order of position for each minor
 */
export async function validatePayload(
  text: string,
  file: string,
  {
    minors,
    native,
    catalogue,
    lenient = false,
  }: Pick<ValidationOptions, 'catalogue' | 'lenient'> & { readonly minors: readonly Minor[]; readonly native: boolean },
): Promise<readonly Problem[]> {
  if (text.trim() === '') return [{ code: 'CONFIG_NO_DOCUMENT', message: `${file}: the file is empty` }];
  const overlay = overlayIn(text, file);
  if (overlay !== null && native) return [notForNative(file)];
  const reported = new Map<string, { problem: Problem; minors: Minor[] }>();
  for (const minor of minors) {
    const found =
      overlay === null
        ? validateKubeletFile(text, file, { minor, catalogue, lenient })
        : validateOverlay(overlay, { minor, catalogue, lenient, syntax: syntaxOf(text) });
    if (found === null) return [notForKubelets(text, file)];
    for (const problem of [...found, ...(native ? ownFindings(text, file, { minor, catalogue }) : [])]) {
      const key = JSON.stringify([problem.code, problem.path, problem.message, problem.severity]);
      const before = reported.get(key);
      if (before === undefined) reported.set(key, { problem: native ? withoutRollback(problem) : problem, minors: [minor] });
      else before.minors.push(minor);
    }
  }
  return [...reported.values()].map(({ problem, minors: of }) =>
    of.length === minors.length || problem.code === OTHER_MINOR_CODE
      ? problem
      : { ...problem, message: `${problem.message} (for kubelet ${of.map(formatMinor).join(', ')})` },
  );
}

/**
 * Validates a file that holds one KubeletConfigurationOverlay.
 * @returns null when the file holds something else
 */
export function validateOverlayFile(text: string, file: string, options: ValidationOptions): readonly Problem[] | null {
  const overlay = overlayIn(text, file);
  return overlay === null ? null : validateOverlay(overlay, { ...options, syntax: syntaxOf(text) });
}

function overlayIn(text: string, file: string): SourceDocument | null {
  const { documents, problems } = parseSource(text, file);
  const [document] = documents;
  return problems.length === 0 && documents.length === 1 && document !== undefined && isOverlayDocument(document) ? document : null;
}

/**
 * Fields that the kubelet would ignore or misread are errors. Rule violations are warnings, because they
 * depend on the node's other fields: the agent validates the result.
 */
export function validateOverlay(document: SourceDocument, options: ValidationOptions): readonly Problem[] {
  const { decoded, problems } = validateKubeletConfiguration(asKubeletDocument(document), options);
  const unread = new Set(decoded.problems);
  return problems.map((problem) =>
    unread.has(problem) || problem.code === OTHER_MINOR_CODE
      ? problem
      : { ...problem, severity: 'warning', message: `${problem.message} (unless the other fields of the node satisfy this rule)` },
  );
}

/** A payload that disables the gate of its own feature. From 1.22 the kubelet has the gate as a flag, which wins. */
function ownFindings(text: string, file: string, options: KubeletReader): readonly Problem[] {
  const document = parseSource(text, file).documents[0];
  if (document === undefined || options.minor >= FIRST_GATED_MINOR) return [];
  const decoded = decodeKubeletConfiguration(document, {
    ...options,
    minor: nearestKnownMinor(options.minor),
    lenient: true,
    syntax: syntaxOf(text),
  });
  const gates = decoded.value.featureGates;
  if (!isJsonObject(gates) || gates.DynamicKubeletConfig !== false) return [];
  return [
    {
      code: 'DYNAMIC_TURNS_ITSELF_OFF',
      path: 'featureGates[DynamicKubeletConfig]',
      position: decoded.fields.get('featureGates[DynamicKubeletConfig]'),
      message:
        'false disables dynamic configuration, so the kubelet would refuse its own flag --dynamic-config-dir and crash at each start',
      hint: 'Remove DynamicKubeletConfig from featureGates',
    },
  ];
}

function withoutRollback(problem: Problem): Problem {
  if (!isStartupRule(problem.code)) return problem;
  return { ...problem, message: `${problem.message}. A kubelet up to 1.23 does not roll back from this error, but stays in a crash loop` };
}

function notForNative(file: string): Problem {
  const message = `${file}: a kubelet up to 1.23 reads a complete KubeletConfiguration, not an overlay`;
  return {
    code: 'CONFIG_WRONG_KIND',
    message,
    hint: 'Push a KubeletConfiguration, or install the agent, which accepts overlays: kubeletadm dynamic enable HOST --backend agent',
  };
}

function notForKubelets(text: string, file: string): Problem {
  const documents = parseSource(text, file).documents.filter(({ root }) => root !== null);
  const [first, second] = documents;
  const document = second ?? first;
  return {
    code: 'CONFIG_WRONG_KIND',
    position: document?.positionAt(document.root?.offset ?? 0),
    message: second === undefined ? 'expected a KubeletConfiguration' : `expected one document, found ${documents.length}`,
    hint: 'Provide one KubeletConfiguration, or one KubeletConfigurationOverlay with only the fields to change',
  };
}
