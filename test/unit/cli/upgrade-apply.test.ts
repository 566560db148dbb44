import { describe, expect, it } from 'vitest';
import { upgradeResult } from '../../../src/cli/upgrade-command.ts';
import { phaseSelection } from '../../../src/host/run-workflow.ts';
import { isEssentialPhase, skippedUpgradePhases } from '../../../src/kubeadm/workflows/upgrade/upgrade-apply.ts';

const resultOf = (...skipped: readonly string[]): string =>
  upgradeResult('v1.36.2', skippedUpgradePhases(phaseSelection({ skipPhases: skipped })).filter(isEssentialPhase));

describe('the result of upgrade apply', () => {
  it.each([[[]], [['addon', 'upload-config', 'control-plane/kubeconfig']]])('is an upgraded control plane without %j', (skipped) => {
    expect(resultOf(...skipped)).toContain('This control plane was upgraded to v1.36.2.');
  });

  it.each([
    [['control-plane'], 'control-plane/etcd, control-plane/apiserver, control-plane/controller-manager, control-plane/scheduler'],
    [['control-plane/scheduler'], 'control-plane/scheduler'],
    [['post-upgrade'], 'post-upgrade'],
  ])('is not an upgraded control plane without %j', (skipped, named) => {
    expect(resultOf(...skipped)).toContain(`This control plane was not completely upgraded to v1.36.2: skipped ${named}.`);
  });
});
