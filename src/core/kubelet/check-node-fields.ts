import { parseSource } from '../config/source.ts';
import { AppError, type Problem } from '../errors.ts';
import { encodeYaml } from '../text/yaml-encode.ts';
import { withBigIntegers } from './big-integers.ts';
import type { Catalogue, Minor } from './catalogue.ts';
import { decodeKubeletConfiguration } from './decode.ts';
import { formatOrigin, type LayeredConfig } from './layers.ts';

/**
 * Reads the finished configuration of a node as its kubelet will: what patches and settings put in must have the right types and names too.
 * @throws AppError with exit code 2 and all problems, each with the layer it comes from
 */
export function checkNodeFields(layered: LayeredConfig, minor: Minor, catalogue: Catalogue): void {
  const source = parseSource(encodeYaml(withBigIntegers(layered.config, { minor, catalogue })), '/var/lib/kubelet/config.yaml');
  const document = source.documents[0];
  const decoded = document === undefined ? source.problems : decodeKubeletConfiguration(document, { minor, catalogue }).problems;
  const problems = [...decoded.filter(({ severity }) => severity !== 'warning'), ...wrongWords(layered)].map((problem) =>
    withOrigin(problem, layered),
  );
  if (problems.length > 0) throw new AppError(problems, { exitCode: 2 });
}

/** Fields the kubelet takes any text for, and then does not start. */
function wrongWords({ config }: LayeredConfig): readonly Problem[] {
  const driver = config.cgroupDriver;
  if (driver === undefined || driver === 'systemd' || driver === 'cgroupfs') return [];
  return [
    {
      code: 'CONFIG_INVALID_VALUE',
      path: 'cgroupDriver',
      message: `must be systemd or cgroupfs, not ${JSON.stringify(driver)}`,
      mend: 'Use what the container runtime uses',
    },
  ];
}

/** A line of the rendered file means nothing to the user: the layer does. */
function withOrigin({ position: _, ...problem }: Problem, { history }: LayeredConfig): Problem {
  const steps =
    problem.path === undefined
      ? undefined
      : (history.get(problem.path) ?? [...history].find(([path]) => path.startsWith(problem.path as string))?.[1]);
  const origin = steps?.at(-1)?.origin;
  return origin === undefined ? problem : { ...problem, message: `${problem.message} (${formatOrigin(origin)})` };
}
