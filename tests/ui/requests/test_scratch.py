from tests.ui.requests.test_tools_by_hand import *
import os
def shot(hand, name):
    open(f"/tmp/hand/{name}.svg","w").write(hand.pilot.app.export_screenshot())

async def test_shots(world):
    async with by_hand(world) as hand:
        await hand.open("order")
        await hand.press(*"tea")
        shot(hand,"form120")
        await hand.pilot.resize_terminal(80,24); await hand.pilot.pause(); await hand.pilot.pause(0.2)
        shot(hand,"form80")
        await hand.pilot.resize_terminal(40,12); await hand.pilot.pause(0.2)
        shot(hand,"form40")
        await hand.pilot.resize_terminal(120,36); await hand.pilot.pause(0.2)
        select = hand.row("/pay?")
        select.value = 1
        await hand.pilot.pause(0.3)
        shot(hand,"form120b")
        hand.row("/pay/customer").focus(); await hand.pilot.pause(0.3)
        shot(hand,"form120c")
        await hand.press("escape")
        await hand.open("echo"); await hand.press(*"hello"); await hand.run(); await hand.ended(1)
        shot(hand,"run120")
        await hand.press("e"); await hand.until(lambda: hand.is_on(ToolFormScreen)); await hand.press("end", *" you"); await hand.run(); await hand.ended(2)
        await hand.press("d"); await hand.pilot.pause(0.3)
        shot(hand,"diff120")
        await hand.pilot.resize_terminal(80,24); await hand.pilot.pause(0.2)
        shot(hand,"diff80")
        await hand.press("n"); await hand.pilot.pause(0.2); shot(hand,"name80")
        await hand.press(*"hi","enter"); await hand.pilot.pause(0.2); shot(hand,"named80")
        await hand.press("escape"); await hand.open("shape"); shot(hand, "shape80"); await hand.run(); await hand.ended(3); shot(hand,"shaped80")
        await hand.pilot.resize_terminal(40,12); await hand.pilot.pause(0.2); shot(hand,"shaped40")
        await hand.press("q")
        await hand.pilot.resize_terminal(80,24); await hand.pilot.pause(0.2);
        await hand.open("wipe"); shot(hand,"wipe80"); await hand.press("escape")
        await hand.open("echo"); await hand.press("ctrl+o"); await hand.pilot.pause(0.2); shot(hand,"saved80"); await hand.press("escape","escape")
        await hand.open("wait"); await hand.press("ctrl+s"); await hand.until(lambda: hand.is_on(RunScreen)); await hand.pilot.pause(1.5); shot(hand,"wait80")
        await hand.press("escape"); await hand.pilot.pause(0.5); shot(hand,"cancelled80")
        await hand.press("escape"); await hand.press("f3"); await hand.pilot.pause(0.3); shot(hand,"pane80")
