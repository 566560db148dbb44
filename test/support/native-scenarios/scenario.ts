import { CONFIG_ERRORS } from '../../../src/dynamic/error-texts.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { comesTo, type NativeSubject } from '../native-subject.ts';
import type { StandInSubject } from '../stand-in-subject.ts';

export const E1 = CONFIG_ERRORS.LOAD_FAILED.text;
export const E2 = CONFIG_ERRORS.VALIDATION_FAILED.text;
export const E4 = CONFIG_ERRORS.DOWNLOAD_FAILED.text;
export const E5 = CONFIG_ERRORS.SYNC_INTERNAL_FAILURE.text;

/** Options of the kubelet in a scenario. */
export interface SubjectOptions {
  /** `Restart=` of its unit; default `always`. */
  readonly restart?: 'always' | 'on-failure';
  /** The kubelet does not create its Node. */
  readonly needsNode?: boolean;
}

interface Reported {
  /** Numbers in the feature's list of scenarios; empty: not in the list. */
  readonly numbers: readonly number[];
  readonly title: string;
  readonly options: SubjectOptions;
}

/**
 * A behaviour of kubelets 1.11 to 1.23, simulated or real. It starts with a kubelet that runs and has
 * reported its local configuration.
 */
export type NativeScenario =
  | (Reported & { readonly notReal: null; readonly run: (subject: NativeSubject) => Promise<void> })
  /** The reason why a real kubelet cannot show it in tests. */
  | (Reported & { readonly notReal: string; readonly run: (subject: StandInSubject) => Promise<void> });

export function scenario(
  numbers: readonly number[],
  title: string,
  run: (subject: NativeSubject) => Promise<void>,
  options: SubjectOptions = {},
): NativeScenario {
  return { numbers, title, options, notReal: null, run };
}

export function standInScenario(
  numbers: readonly number[],
  title: string,
  notReal: string,
  run: (subject: StandInSubject) => Promise<void>,
): NativeScenario {
  return { numbers, title, options: {}, notReal, run };
}

/** The name of its test. */
export function scenarioTitle({ numbers, title }: NativeScenario): string {
  return numbers.length === 0 ? title : `${numbers.join(', ')}: ${title}`;
}

export const nodeRef = ({ nodeName: name }: NativeSubject) => ({ apiVersion: 'v1', kind: 'Node', name });

/** Assigns the existing ConfigMap, and waits until the kubelet runs with it. */
export async function takes(subject: NativeSubject, object: KubeObject, key?: string): Promise<void> {
  await subject.assign(object.metadata.name, key);
  const at = subject.at(object, key);
  await comesTo(subject, { status: { assigned: at, active: at } });
}

/** With ConfigMap `a` as the last known good configuration. */
export async function withLastKnownGood(subject: NativeSubject, text: string): Promise<KubeObject> {
  const a = await subject.put('a', { kubelet: text });
  await takes(subject, a);
  await subject.passTrial();
  const at = subject.at(a);
  await comesTo(subject, { status: { assigned: at, active: at, lastKnownGood: at } });
  return a;
}
