import { AppError, isAppError } from '../../base/errors.ts';
import { observe } from '../../host/access/observe.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { KubeletReader } from '../catalogue/catalogue.ts';
import { fieldsNotInForce } from '../diff/diff-configs.ts';
import { kubeletCommandLine } from '../facts/kubelet-process.ts';
import { dottedPath } from '../layers/layers.ts';
import { configInputOf, readKubeletSetup } from './kubelet-setup.ts';
import { layerRunningConfig } from './running-config.ts';

/**
 * Reads the command line of the restarted kubelet and the files that it names, and compares the changed fields with those
 * of the plan.
 * @param after the effective configuration of all files and flags, as text
 * @param fields to compare
 * @param isAssigned whether a file of `--config` is the configuration of a ConfigMap, which is verified at the API server
 * @returns null: they are in force; otherwise why that is unknown, as a clause
 * @throws AppError COMMIT_NOT_PROVEN: a field is not in force
 */
export async function verifySetup(
  { host, signal }: Pick<PhaseContext, 'host' | 'signal'>,
  phase: string,
  { minor, catalogue }: KubeletReader,
  { after, fields }: { readonly after: string; readonly fields: readonly string[] },
  isAssigned: (path: string) => boolean,
): Promise<string | null> {
  try {
    const found = await observe(host, kubeletCommandLine, signal);
    if (found === null) return 'the command line of the kubelet cannot be read';
    const words = found.argv.map((word) => ({ word, source: 'the running command line' }));
    const setup = await readKubeletSetup(host, words, { minor, catalogue, signal });
    if (setup.dynamicConfig !== null || isAssigned(setup.configFile?.path ?? '')) return null;
    if (setup.missing[0] !== undefined) return `${setup.missing[0]} cannot be read`;
    const { config, history } = layerRunningConfig(configInputOf(setup, { minor, catalogue })).layered;
    const missing = fieldsNotInForce(config, after, fields, { minor, catalogue });
    if (missing.length === 0) return null;
    const [first = ''] = missing;
    const origin = history.get(dottedPath(first))?.at(-1)?.origin;
    const why = origin === undefined ? '' : `: ${first} is from ${origin.source}`;
    throw new AppError({
      host: host.name,
      code: 'COMMIT_NOT_PROVEN',
      message: `${phase}: the restarted kubelet does not use the new ${missing.length === 1 ? 'value' : 'values'} of ${missing.join(', ')}${why}`,
      hint: 'Remove the setting that wins from the host. The next message shows whether the host was rolled back',
    });
  } catch (error) {
    if (!isAppError(error) || error.code === 'COMMIT_NOT_PROVEN') throw error;
    return error.problems[0]?.message ?? error.code;
  }
}
